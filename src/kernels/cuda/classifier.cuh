#pragma once

// What the kernels of the cross-entropy share.

#include "core/device/cuda_device.h"
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

/// The gradient's element; `inverse` = 1 / sum of exponentials.
__device__ inline float gradient_of(const Classifier& args, float logit, float max, float inverse,
                                    int v, int target) {
  const float one_hot = v == target ? 1.0F : 0.0F;
  return v < args.vocabulary ? (__expf(logit - max) * inverse - one_hot) * args.scale : 0.0F;
}

/// Rows that a block can hold in shared memory, on a GPU that copies runs of bytes there.
bool can_stage_rows(const CudaFacts& facts, const Classifier& args);
void launch_staged_rows(CudaStream& stream, const Classifier& args);

}  // namespace lockstep::cuda
