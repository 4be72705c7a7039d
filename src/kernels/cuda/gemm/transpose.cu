// Transposed copies, for kernels that read K-major operands only; of a matrix as it lies, or of
// what a LayerNorm makes of it. Who needs the sums of the columns too has them from the same
// reading.

#include <cuda_runtime.h>

#include "core/base/ceil_div.h"
#include "core/device/cuda_error.h"
#include "kernels/cuda/gemm/transposed_copy.h"
#include "kernels/cuda/grid.h"

namespace lockstep::cuda {
namespace {

constexpr int kTile = kTransposeTile;
constexpr int kThreads = 256;
// One chunk more than the tile: eight rows then start in eight different groups of four banks.
constexpr int kPitch = kTile + 4;

// What becomes of four neighbours of a row. What that needs is fetched beside them.
struct AsTheyLie {
  struct Columns {};
  struct Row {};
  __device__ Columns columns(int /*column*/) const { return {}; }
  __device__ Row row(int /*row*/) const { return {}; }
  static __device__ float4 apply(float4 x, Row /*row*/, Columns /*columns*/) { return x; }
};
struct Normed {
  RowNorm norm;
  struct Columns {
    float4 gamma;
    float4 beta;
  };
  struct Row {
    float mean;
    float rstd;
  };
  __device__ Columns columns(int column) const {
    return {*reinterpret_cast<const float4*>(norm.gamma + column),
            *reinterpret_cast<const float4*>(norm.beta + column)};
  }
  __device__ Row row(int row) const { return {norm.mean[row], norm.rstd[row]}; }
  // Multiplied and added in the order of layernorm_forward.
  static __device__ float4 apply(float4 x, Row row, Columns columns) {
    const auto normed = [row](float value, float gamma, float beta) {
      return (value - row.mean) * row.rstd * gamma + beta;
    };
    return make_float4(
        normed(x.x, columns.gamma.x, columns.beta.x), normed(x.y, columns.gamma.y, columns.beta.y),
        normed(x.z, columns.gamma.z, columns.beta.z), normed(x.w, columns.gamma.w, columns.beta.w));
  }
};

// The sum of a tile's row, which is a run of one column of the matrix, by four lanes: into `sums`,
// which has one row for each row of blocks.
__device__ void store_sums(const float* tile, float* sums, int column0, int columns,
                           int64_t pitch) {
  const int j = static_cast<int>(threadIdx.x) / 4;
  const int part = static_cast<int>(threadIdx.x) % 4;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 four = *reinterpret_cast<const float4*>(&tile[j * kPitch + (4 * i + part) * 4]);
    sum += (four.x + four.y) + (four.z + four.w);
  }
  sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
  sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
  if (part == 0 && column0 + j < columns) {
    sums[blockIdx.y * pitch + column0 + j] = sum;
  }
}

// A block takes 64 x 64 elements. A thread reads four rows of four elements, transposes them in its
// registers, and writes 16 bytes each way.
template <class Map, bool kSums>
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(Map map, float* to, float* sums, const float* from, int rows, int columns,
                     int64_t pitch) {
  __shared__ __align__(16) float tile[kTile * kPitch];
  const int row0 = static_cast<int>(blockIdx.y) * kTile;
  const int column0 = static_cast<int>(blockIdx.x) * kTile;
  const int chunk = static_cast<int>(threadIdx.x) % 16 * 4;
  const int line = static_cast<int>(threadIdx.x) / 16 * 4;
  const int column = min(column0 + chunk, columns - 4);  // what is outside is fetched somewhere
  float4 in[4];
  typename Map::Row of_row[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = min(row0 + line + i, rows - 1);
    in[i] = *reinterpret_cast<const float4*>(from + row * pitch + column);
    of_row[i] = map.row(row);
  }
  const typename Map::Columns of_columns = map.columns(column);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    in[i] = Map::apply(in[i], of_row[i], of_columns);
    if (kSums && row0 + line + i >= rows) {
      in[i] = make_float4(0, 0, 0, 0);
    }
  }
  const auto put = [&](int j, float4 value) {
    *reinterpret_cast<float4*>(&tile[(chunk + j) * kPitch + line]) = value;
  };
  put(0, make_float4(in[0].x, in[1].x, in[2].x, in[3].x));
  put(1, make_float4(in[0].y, in[1].y, in[2].y, in[3].y));
  put(2, make_float4(in[0].z, in[1].z, in[2].z, in[3].z));
  put(3, make_float4(in[0].w, in[1].w, in[2].w, in[3].w));
  __syncthreads();
  if constexpr (kSums) {
    store_sums(tile, sums, column0, columns, pitch);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int j = static_cast<int>(threadIdx.x) / 16 + i * 16;
    if (column0 + j < columns && row0 + chunk < rows) {
      *reinterpret_cast<float4*>(to + static_cast<int64_t>(column0 + j) * rows + row0 + chunk) =
          *reinterpret_cast<const float4*>(&tile[j * kPitch + chunk]);
    }
  }
}

template <bool kSums, class Map>
void launch(CudaStream& stream, const Map& map, float* to, float* sums, const float* from,
            int64_t rows, int64_t columns, int64_t pitch) {
  const dim3 grid(static_cast<unsigned>(ceil_div(columns, kTile)),
                  blocks_down(rows, kTile, "rows"));
  transpose_kernel<Map, kSums><<<grid, kThreads, 0, stream.handle()>>>(
      map, to, sums, from, static_cast<int>(rows), static_cast<int>(columns), pitch);
  check_cuda(cudaGetLastError(), "transposing a matrix");
}

}  // namespace

void transpose_matrix(CudaStream& stream, float* to, const float* from, int64_t rows,
                      int64_t columns, int64_t pitch) {
  launch<false>(stream, AsTheyLie{}, to, nullptr, from, rows, columns, pitch);
}

void transpose_normed(CudaStream& stream, float* to, const float* from, int64_t rows,
                      int64_t columns, const RowNorm& norm) {
  launch<false>(stream, Normed{norm}, to, nullptr, from, rows, columns, columns);
}

void transpose_summed(CudaStream& stream, float* to, float* sums, const float* from, int64_t rows,
                      int64_t columns, int64_t pitch) {
  launch<true>(stream, AsTheyLie{}, to, sums, from, rows, columns, pitch);
}

}  // namespace lockstep::cuda
