#pragma once

// What the kernels of the cross-entropy share.

#include "core/device/cuda_device.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/softmax_sum.cuh"

namespace lockstep::cuda {

struct Classifier {
  float* losses;
  float* logits;
  const int32_t* targets;
  int64_t rows;
  int vocabulary;
  int columns;
  bool gradient;
  float scale;
};

/// The gradient of the logits at v, v + 1, ...; `inverse` = 1 / sum of exponentials.
template <int kWidth>
__device__ Pack<kWidth> gradient_of(const Classifier& args, Pack<kWidth> logits, float max,
                                    float inverse, int v, int target) {
  for_each_lane<kWidth>([&](int i) {
    const float p = __expf(logits[i] - max) * inverse;
    logits[i] = (v + i == target ? p - 1.0F : p) * args.scale;
  });
  if (v + kWidth > args.vocabulary) {
    for_each_lane<kWidth>([&](int i) { logits[i] = v + i < args.vocabulary ? logits[i] : 0.0F; });
  }
  return logits;
}

/// Rows that a block can hold in shared memory, on a GPU that copies runs of bytes there.
bool can_stage_rows(const CudaFacts& facts, const Classifier& args);
void launch_staged_rows(CudaStream& stream, const Classifier& args);

}  // namespace lockstep::cuda
