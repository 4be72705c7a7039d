#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/device/cpu_device.h"
#include "unit/model/reference_device.h"
#include "unit/model/tiny_gpt.h"

// Each parameter tensor is stepped along u = g / ‖g‖, so that all its elements pull together; the
// predicted slope of the loss is then ‖g‖. The slope is taken by central differences of fourth
// order, (8 (L(e) - L(-e)) - (L(2e) - L(-2e))) / 12e, with e chosen to move the loss by 0.0025: a
// float loss of 3 is rounded to 1e-7, which is 5e-5 of that.

namespace lockstep {
namespace {

// Measured: 5e-5 at most, the rounding of the loss. Deleting one term of LayerNorm's backward costs
// every tensor below it 2e-3 and most of them 0.1.
constexpr double kTolerance = 2e-4;
constexpr double kLossChange = 0.0025;

GptConfig small(Gelu gelu) {
  return {.vocab_size = 19, .block_size = 9, .n_layer = 2, .n_head = 2, .n_embd = 12, .gelu = gelu};
}

struct TensorError {
  std::string name;
  double relative;
};

template <class Device>
double norm_of(View<Device, float> gradient) {
  double squares = 0;
  for (const float g : gradient) {
    squares += static_cast<double>(g) * g;
  }
  return std::sqrt(squares);
}

template <class Device>
std::vector<TensorError> directional_errors(TinyGpt<Device>& gpt, typename Device::Stream& stream) {
  gpt.forward(stream);
  gpt.model.backward(stream, false, {});
  const std::vector<float> start(gpt.parameters.view().begin(), gpt.parameters.view().end());
  std::vector<TensorError> errors;
  for (const ParamSpec& spec : gpt.table.specs()) {
    const View<Device, float> gradient = gpt.gradients.view().subview(spec.range);
    const View<Device, float> tensor = gpt.parameters.view().subview(spec.range);
    const double norm = norm_of(gradient);
    const double epsilon = kLossChange / norm;
    const auto loss_at = [&](double distance) {
      for (int64_t i = 0; i < tensor.size(); ++i) {
        tensor[i] = static_cast<float>(start[static_cast<size_t>(spec.range.begin + i)] +
                                       distance * gradient[i] / norm);
      }
      return static_cast<double>(gpt.evaluate(stream));
    };
    const double near = loss_at(epsilon) - loss_at(-epsilon);
    const double far = loss_at(2 * epsilon) - loss_at(-2 * epsilon);
    loss_at(0);
    errors.push_back({spec.name, std::abs((8 * near - far) / (12 * epsilon) - norm) / norm});
  }
  return errors;
}

TEST(GradientCheck, EveryTensorOfTheCpuModelAgrees) {
  for (const Gelu gelu : {Gelu::kTanh, Gelu::kErf}) {
    TinyGpt<CpuDevice> gpt(small(gelu), 2, 9);
    CpuStream stream;
    for (const TensorError& error : directional_errors(gpt, stream)) {
      EXPECT_LT(error.relative, kTolerance) << error.name;
    }
  }
}

TEST(GradientCheck, EveryTensorOfTheReferenceModelAgrees) {
  TinyGpt<ReferenceDevice> gpt(small(Gelu::kTanh), 2, 9);
  ReferenceStream stream;
  for (const TensorError& error : directional_errors(gpt, stream)) {
    EXPECT_LT(error.relative, kTolerance) << error.name;
  }
}

// The check of the check: without x̂ · mean(g · x̂) only the tensors above every LayerNorm's input
// may still agree, which are the last norm's.
TEST(GradientCheck, NoticesADeletedTermOfLayerNorm) {
  TinyGpt<ReferenceDevice> gpt(small(Gelu::kTanh), 2, 9);
  ReferenceStream stream;
  stream.drop_normalised_mean = true;
  for (const TensorError& error : directional_errors(gpt, stream)) {
    const bool untouched = error.name.starts_with("ln_f");
    EXPECT_EQ(error.relative < kTolerance, untouched) << error.name << ": " << error.relative;
  }
}

}  // namespace
}  // namespace lockstep
