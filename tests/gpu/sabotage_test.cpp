#include <gtest/gtest.h>

#include <vector>

#include "gpu/gpu_gpt.h"
#include "unit/model/gradient_check.h"

// The check of the gradient check on the GPU: linked with a LayerNorm backward that lacks a term
// (sabotaged_layernorm.cu), everything below the last norm must fail it.

namespace lockstep {
namespace {

TEST(GpuSabotage, TheGradientCheckNoticesADeletedTermOfLayerNorm) {
  CudaStream stream(Precision::kFp32);
  GpuGpt gpt(stream, {.vocab_size = 19, .block_size = 9, .n_layer = 2, .n_head = 2, .n_embd = 64},
             2, 9);
  const std::vector<float> gradients = gpt.new_gradients();
  for (const TensorError& error : directional_errors(gpt, formula_parameters(gpt.table), gradients,
                                                     [&] { return gpt.evaluate(); })) {
    const bool untouched = error.name.starts_with("ln_f");
    EXPECT_EQ(error.relative < 2e-4, untouched) << error.name << ": " << error.relative;
  }
}

}  // namespace
}  // namespace lockstep
