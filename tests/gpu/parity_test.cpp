#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "gpu/gpu_gpt.h"
#include "unit/model/parity_reference.h"

// Logits, loss and gradients on the GPU against PyTorch in float64, as on the CPU. The figures are
// printed too.

namespace lockstep {
namespace {

class GpuParity : public testing::TestWithParam<const char*> {};

TEST_P(GpuParity, LogitsLossAndGradientsEqualPyTorch) {
  const ParityReference reference = read_parity_reference(LOCKSTEP_PARITY_FILE, GetParam());
  ASSERT_EQ(reference.gradients.size(), 28U);
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    const bool tf32 = precision == Precision::kTf32;
    CudaStream stream(precision);
    GpuGpt gpt(stream, reference.config, reference.batch, reference.config.block_size);
    const std::vector<float> logits = gpt.logits();
    const float loss = gpt.forward();
    gpt.backward();
    const ParityErrors errors = parity_errors(reference, loss, logits, gpt.gradient_values());
    // A factor of each product in tf32 is off by 2^-12 on average.
    EXPECT_LT(errors.largest(), tf32 ? 1e-2 : 1e-5) << errors.worst;
    std::printf("%s %s, off PyTorch's float64 by: loss %.1e, logits %.1e, gradients %.1e (%s)\n",
                GetParam(), tf32 ? "tf32" : "fp32", errors.loss, errors.logits, errors.gradients,
                errors.worst.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(BothFormsOfGelu, GpuParity, testing::Values("tanh", "erf"),
                         [](const auto& form) { return std::string(form.param); });

}  // namespace
}  // namespace lockstep
