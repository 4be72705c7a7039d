// Sums over rows in two stages: each block leaves the sums of a strip of columns over a run of
// rows, a second launch adds these in order.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "core/device/dependent_launch.cuh"
#include "kernels/check_size.h"
#include "kernels/cuda/column_partials.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/pack.cuh"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kSumWarps = 16;
constexpr int kMinRows = 16;       // of a block: two of each warp
constexpr int kBlocksPerUnit = 4;  // for each multiprocessor

struct Strip {
  const float* in;
  float* partials;
  int64_t rows;
  int64_t columns;
  int64_t rows_of_block;
};

/// A warp reads 32 neighbouring packs of one row; the block's warps take its rows in turn.
template <int kWidth>
__global__ void __launch_bounds__(kWarps * 32) column_sum_kernel(Strip strip) {
  __shared__ Pack<kWidth> sums[kWarps][32];
  allow_dependent_launch();
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + lane) * kWidth;
  const int64_t begin = blockIdx.y * strip.rows_of_block;
  const int64_t end = min(strip.rows, begin + strip.rows_of_block);
  Pack<kWidth> sum = {};
  if (column < strip.columns) {
    const float* from = strip.in + column;
#pragma unroll 8
    for (int64_t row = begin + warp; row < end; row += kWarps) {
      const Pack<kWidth> values = load_pack<kWidth>(from + row * strip.columns);
      for_each_lane<kWidth>([&](int i) { sum[i] += values[i]; });
    }
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp == 0 && column < strip.columns) {
#pragma unroll
    for (int other = 1; other < kWarps; ++other) {
      for_each_lane<kWidth>([&](int i) { sum[i] += sums[other][lane][i]; });
    }
    store_pack(strip.partials + blockIdx.y * strip.columns + column, sum);
  }
}

struct Partials {
  const float* partials;
  float* out;
  float* out_behind;
  int64_t parts;
  int64_t columns;
  int64_t out_columns;
  bool accumulate;
};

__global__ void __launch_bounds__(kSumWarps * 32) column_partials_kernel(Partials args) {
  __shared__ float sums[kSumWarps][32];
  wait_for_kernel_before();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  float sum = 0;
  if (column < args.columns) {
#pragma unroll 8
    for (int64_t part = threadIdx.y; part < args.parts; part += kSumWarps) {
      sum += args.partials[part * args.columns + column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= args.columns) {
    return;
  }
#pragma unroll
  for (int other = 1; other < kSumWarps; ++other) {
    sum += sums[other][threadIdx.x];
  }
  float* const out =
      column < args.out_columns ? args.out + column : args.out_behind + (column - args.out_columns);
  *out = args.accumulate ? *out + sum : sum;
}

}  // namespace

void sum_column_partials(CudaStream& stream, const ColumnPartials& args) {
  check_size("column partials", args.partials.size(), args.parts * args.columns);
  check_size("column partials: out", args.out.size() + args.out_behind.size(), args.columns);
  launch_behind(stream, column_partials_kernel,
                dim3(static_cast<unsigned>((args.columns + 31) / 32)), dim3(32, kSumWarps),
                Partials{.partials = args.partials.data(),
                         .out = args.out.data(),
                         .out_behind = args.out_behind.data(),
                         .parts = args.parts,
                         .columns = args.columns,
                         .out_columns = args.out.size(),
                         .accumulate = args.accumulate});
}

}  // namespace cuda

void column_sum(CudaStream& stream, const ColumnSum<CudaDevice>& args) {
  const int64_t rows = args.rows;
  const int64_t columns = args.columns;
  check_size("column_sum: in", args.in.size(), rows * columns);
  check_size("column_sum: out", args.out.size(), columns);
  if (columns == 0) {
    return;
  }
  const bool vectorized = columns % 4 == 0 && cuda::all_aligned16(args.in.data());
  cuda::dispatch_width(vectorized, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr int64_t kStrip = 32 * kWidth;
    const int64_t strips = (columns + kStrip - 1) / kStrip;
    // Enough blocks to fill the GPU, none of them with hardly any rows.
    const int64_t wanted =
        std::max<int64_t>(1, cuda::kBlocksPerUnit * stream.facts().multiprocessors / strips);
    const int64_t rows_of_block = std::max<int64_t>((rows + wanted - 1) / wanted, cuda::kMinRows);
    const int64_t parts = (rows + rows_of_block - 1) / rows_of_block;
    const CudaView<float> partials = stream.scratch<float>(parts * columns);
    if (parts > 0) {
      const dim3 grid(static_cast<unsigned>(strips), static_cast<unsigned>(parts));
      cuda::column_sum_kernel<kWidth>
          <<<grid, dim3(32, cuda::kWarps), 0, stream.handle()>>>({.in = args.in.data(),
                                                                  .partials = partials.data(),
                                                                  .rows = rows,
                                                                  .columns = columns,
                                                                  .rows_of_block = rows_of_block});
      check_cuda(cudaGetLastError(), "launching a column sum");
    }
    cuda::sum_column_partials(stream, {.parts = parts,
                                       .columns = columns,
                                       .partials = partials,
                                       .out = args.out.subview({0, columns}),
                                       .accumulate = args.accumulate});
  });
}

}  // namespace lockstep
