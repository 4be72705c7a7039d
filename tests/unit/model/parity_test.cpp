#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/device/cpu_device.h"
#include "unit/model/parity_reference.h"
#include "unit/model/tiny_gpt.h"

// Logits, loss and gradients against PyTorch in float64: tests/parity/make_gpt_reference.py.

namespace lockstep {
namespace {

class Parity : public testing::TestWithParam<const char*> {};

TEST_P(Parity, LogitsLossAndGradientsEqualPyTorch) {
  const ParityReference reference = read_parity_reference(LOCKSTEP_PARITY_FILE, GetParam());
  ASSERT_EQ(reference.logits.size(), 6U);
  ASSERT_EQ(reference.gradients.size(), 28U);
  TinyGpt<CpuDevice> gpt(reference.config, reference.batch, reference.config.block_size);
  CpuStream stream;
  const auto view = gpt.model.logits(stream, gpt.tokens.view());
  const std::vector<float> logits(view.begin(), view.end());
  const float loss = gpt.forward(stream);
  gpt.model.backward(stream, false, {});
  const ParityErrors errors = parity_errors(reference, loss, logits, gpt.gradient_values());
  EXPECT_LT(errors.loss, 1e-5);
  EXPECT_LT(errors.logits, 1e-5);
  EXPECT_LT(errors.gradients, 1e-5) << errors.worst;
}

INSTANTIATE_TEST_SUITE_P(BothFormsOfGelu, Parity, testing::Values("tanh", "erf"),
                         [](const auto& form) { return std::string(form.param); });

}  // namespace
}  // namespace lockstep
