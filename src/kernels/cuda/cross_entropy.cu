// Loss and its gradient. A short row is held in the registers of a warp, a long one in the shared
// memory of a block (cross_entropy_staged.cu). Of a row that neither can hold a block takes the sum
// of exponentials in one pass and writes the gradient in a second, which starts where the first
// ended and finds the row in the L2 cache.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/check_size.h"
#include "kernels/cuda/classifier.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/pack.cuh"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kShortWarps = 4;  // rows of a block
constexpr int kLongWarps = 32;  // of the block of a row

/// Rows of at most 32 * kItems columns, one a warp.
template <int kItems>
__global__ void __launch_bounds__(kShortWarps * 32) short_rows_kernel(Classifier args) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kShortWarps + threadIdx.x / 32;
  if (row >= args.rows) {
    return;
  }
  float* const logits = args.logits + row * args.columns;
  const int target = args.targets[row];
  const float target_logit = logits[target];
  float values[kItems];
  float most = -FLT_MAX;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int v = i * 32 + lane;
    values[i] = v < args.vocabulary ? logits[v] : -FLT_MAX;
    most = fmaxf(most, values[i]);
  }
  SoftmaxSum own = {.max = most};
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (i * 32 + lane < args.vocabulary) {
      own.add(values[i]);
    }
  }
  const SoftmaxSum all = warp_merge(own);
  if (lane == 0) {
    args.losses[row] = all.log() - target_logit;
  }
  __syncwarp();  // every lane has read the target's logit
  if (args.gradient) {
    const float inverse = 1.0F / all.sum;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int v = i * 32 + lane;
      if (v < args.columns) {
        const Pack<1> logit = {values[i]};
        store_pack(logits + v, gradient_of(args, logit, all.max, inverse, v, target));
      }
    }
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kLongWarps * 32) long_rows_kernel(Classifier args) {
  constexpr int kStep = kLongWarps * 32 * kWidth;
  const int64_t row = blockIdx.x;
  float* const logits = args.logits + row * args.columns;
  const int target = args.targets[row];
  const float target_logit = logits[target];
  const int first = static_cast<int>(threadIdx.x) * kWidth;
  SoftmaxSum own;
#pragma unroll 4
  for (int v = first; v < args.vocabulary; v += kStep) {
    own.add(load_pack<kWidth>(logits + v), args.vocabulary - v);
  }
  // Every thread has read the target's logit when this returns.
  const SoftmaxSum all = block_merge<kLongWarps>(own);
  if (threadIdx.x == 0) {
    args.losses[row] = all.log() - target_logit;
  }
  if (args.gradient) {
    const float inverse = 1.0F / all.sum;
    const int last = (args.columns - 1) / kStep * kStep + first;
#pragma unroll 4
    for (int v = last; v >= 0; v -= kStep) {
      if (v < args.columns) {
        const Pack<kWidth> values = load_pack<kWidth>(logits + v);
        stream_pack(logits + v, gradient_of(args, values, all.max, inverse, v, target));
      }
    }
  }
}

template <int kItems>
void launch_short(CudaStream& stream, const Classifier& args) {
  short_rows_kernel<kItems><<<static_cast<unsigned>((args.rows + kShortWarps - 1) / kShortWarps),
                              kShortWarps * 32, 0, stream.handle()>>>(args);
}

}  // namespace
}  // namespace cuda

void cross_entropy(CudaStream& stream, const CrossEntropy<CudaDevice>& args) {
  const int64_t columns = args.padded_vocabulary;
  check_size("cross_entropy: losses", args.losses.size(), args.rows);
  check_size("cross_entropy: logits", args.logits.size(), args.rows * columns);
  check_size("cross_entropy: targets", args.targets.size(), args.rows);
  check_size("cross_entropy: padded vocabulary", columns, args.vocabulary);
  if (args.rows == 0) {
    return;
  }
  const cuda::Classifier classifier = {.losses = args.losses.data(),
                                       .logits = args.logits.data(),
                                       .targets = args.targets.data(),
                                       .rows = args.rows,
                                       .vocabulary = static_cast<int>(args.vocabulary),
                                       .columns = static_cast<int>(columns),
                                       .gradient = args.gradient,
                                       .scale = args.gradient_scale};
  if (columns <= 4 * 32) {
    cuda::launch_short<4>(stream, classifier);
  } else if (columns <= 32 * 32) {
    cuda::launch_short<32>(stream, classifier);
  } else if (cuda::can_stage_rows(stream.facts(), classifier)) {
    cuda::launch_staged_rows(stream, classifier);
  } else {
    cuda::dispatch_width(
        columns % 4 == 0 && cuda::all_aligned16(classifier.logits), [&](auto width) {
          cuda::long_rows_kernel<decltype(width)::value>
              <<<static_cast<unsigned>(args.rows), cuda::kLongWarps * 32, 0, stream.handle()>>>(
                  classifier);
        });
  }
  check_cuda(cudaGetLastError(), "launching a cross-entropy");
}

}  // namespace lockstep
