// Transposed copies, for kernels that read K-major operands only.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/cuda/gemm/launch.h"

namespace lockstep::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kThreads = 256;
// One chunk more than the tile: eight rows then start in eight different groups of four banks.
constexpr int kPitch = kTile + 4;

// A block takes 64 x 64 elements. A thread reads four rows of four elements, transposes them in its
// registers, and writes 16 bytes each way.
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(float* to, const float* from, int rows, int columns, int64_t pitch) {
  __shared__ __align__(16) float tile[kTile * kPitch];
  const int row0 = static_cast<int>(blockIdx.y) * kTile;
  const int column0 = static_cast<int>(blockIdx.x) * kTile;
  const int chunk = static_cast<int>(threadIdx.x) % 16 * 4;
  const int line = static_cast<int>(threadIdx.x) / 16 * 4;
  float4 in[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = row0 + line + i;
    const bool inside = row < rows && column0 + chunk < columns;
    in[i] = inside ? *reinterpret_cast<const float4*>(from + row * pitch + column0 + chunk)
                   : make_float4(0, 0, 0, 0);
  }
  const auto put = [&](int column, float4 value) {
    *reinterpret_cast<float4*>(&tile[(chunk + column) * kPitch + line]) = value;
  };
  put(0, make_float4(in[0].x, in[1].x, in[2].x, in[3].x));
  put(1, make_float4(in[0].y, in[1].y, in[2].y, in[3].y));
  put(2, make_float4(in[0].z, in[1].z, in[2].z, in[3].z));
  put(3, make_float4(in[0].w, in[1].w, in[2].w, in[3].w));
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int column = column0 + static_cast<int>(threadIdx.x) / 16 + i * 16;
    if (column < columns && row0 + chunk < rows) {
      *reinterpret_cast<float4*>(to + static_cast<int64_t>(column) * rows + row0 + chunk) =
          *reinterpret_cast<const float4*>(&tile[(column - column0) * kPitch + chunk]);
    }
  }
}

}  // namespace

void transpose_matrix(CudaStream& stream, float* to, const float* from, int64_t rows,
                      int64_t columns, int64_t pitch) {
  const dim3 grid(static_cast<unsigned>((columns + kTile - 1) / kTile),
                  static_cast<unsigned>((rows + kTile - 1) / kTile));
  transpose_kernel<<<grid, kThreads, 0, stream.handle()>>>(to, from, static_cast<int>(rows),
                                                           static_cast<int>(columns), pitch);
  check_cuda(cudaGetLastError(), "transposing a matrix");
}

}  // namespace lockstep::cuda
