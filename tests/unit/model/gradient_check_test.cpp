#include "unit/model/gradient_check.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/device/cpu_device.h"
#include "unit/model/reference_device.h"
#include "unit/model/tiny_gpt.h"

namespace lockstep {
namespace {

// Measured: 5e-5 at most, the rounding of the loss. Deleting one term of LayerNorm's backward costs
// every tensor below it 2e-3 and most of them 0.1.
constexpr double kTolerance = 2e-4;

GptConfig small(Gelu gelu) {
  return {.vocab_size = 19, .block_size = 9, .n_layer = 2, .n_head = 2, .n_embd = 12, .gelu = gelu};
}

template <class Device>
std::vector<TensorError> errors_of(TinyGpt<Device>& gpt, typename Device::Stream& stream) {
  gpt.forward(stream);
  gpt.model.backward(stream, false, {});
  return directional_errors(gpt, formula_parameters(gpt.table), gpt.gradient_values(),
                            [&] { return gpt.evaluate(stream); });
}

TEST(GradientCheck, EveryTensorOfTheCpuModelAgrees) {
  for (const Gelu gelu : {Gelu::kTanh, Gelu::kErf}) {
    TinyGpt<CpuDevice> gpt(small(gelu), 2, 9);
    CpuStream stream;
    for (const TensorError& error : errors_of(gpt, stream)) {
      EXPECT_LT(error.relative, kTolerance) << error.name;
    }
  }
}

TEST(GradientCheck, EveryTensorOfTheReferenceModelAgrees) {
  TinyGpt<ReferenceDevice> gpt(small(Gelu::kTanh), 2, 9);
  ReferenceStream stream;
  for (const TensorError& error : errors_of(gpt, stream)) {
    EXPECT_LT(error.relative, kTolerance) << error.name;
  }
}

// The check of the check: without x̂ · mean(g · x̂) only the tensors above every LayerNorm's input
// may still agree, which are the last norm's.
TEST(GradientCheck, NoticesADeletedTermOfLayerNorm) {
  TinyGpt<ReferenceDevice> gpt(small(Gelu::kTanh), 2, 9);
  ReferenceStream stream;
  stream.drop_normalised_mean = true;
  for (const TensorError& error : errors_of(gpt, stream)) {
    const bool untouched = error.name.starts_with("ln_f");
    EXPECT_EQ(error.relative < kTolerance, untouched) << error.name << ": " << error.relative;
  }
}

}  // namespace
}  // namespace lockstep
