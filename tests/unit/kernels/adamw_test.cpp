#include "kernels/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

using State = naive::AdamWState<float>;

State state_of(int64_t size) {
  State state{normal_values(size, 1), normal_values(size, 2, 0.1), normal_values(size, 3, 0.1)};
  for (float& v : state.v) {
    v *= v;
  }
  return state;
}

naive::AdamWState<double> to_double(const State& state) {
  return {lockstep::to_double(state.parameters), lockstep::to_double(state.m),
          lockstep::to_double(state.v)};
}

// In float, so that the reference knows the numbers that the kernel is given.
struct Settings {
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
  AdamWStep step{.learning_rate = 1e-3F,
                 .bias_correction1 = 0.271F,
                 .bias_correction2 = 0.0297F,
                 .gradient_scale = 0.5F};

  naive::AdamWHyperparameters hyperparameters() const {
    return {.beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon,
            .weight_decay = weight_decay,
            .learning_rate = step.learning_rate,
            .bias_correction1 = step.bias_correction1,
            .bias_correction2 = step.bias_correction2,
            .gradient_scale = step.gradient_scale};
  }
};

State run(CpuStream& stream, const State& before, const std::vector<float>& gradients,
          const Settings& with) {
  Output parameters(before.parameters);
  Output m(before.m);
  Output v(before.v);
  adamw(stream, {.parameters = parameters.view(),
                 .m = m.view(),
                 .v = v.view(),
                 .gradients = view_of(gradients),
                 .step = {&with.step, 1},
                 .beta1 = with.beta1,
                 .beta2 = with.beta2,
                 .epsilon = with.epsilon,
                 .weight_decay = with.weight_decay});
  return {parameters.values(), m.values(), v.values()};
}

TEST(AdamW, MatchesTheReference) {
  for (const int64_t size : {1, 17, 1000, 100003}) {
    const State before = state_of(size);
    const auto gradients = normal_values(size, 4);
    const Settings with;
    State after;
    for (auto member : {&State::parameters, &State::m, &State::v}) {
      at_any_thread_count("adamw", [&](CpuStream& stream) {
        after = run(stream, before, gradients, with);
        return after.*member;
      });
    }
    const State plain = naive::adamw(before, gradients, with.hyperparameters());
    const auto reference =
        naive::adamw(to_double(before), lockstep::to_double(gradients), with.hyperparameters());
    expect_close("parameters", after.parameters, plain.parameters, reference.parameters);
    expect_close("m", after.m, plain.m, reference.m);
    expect_close("v", after.v, plain.v, reference.v);
  }
}

// What changes is small beside the parameter: without weight decay and from zero only it is left.
TEST(AdamW, TheFirstStepMovesByTheLearningRateAgainstTheGradient) {
  constexpr int64_t kSize = 999;
  const std::vector<float> zero(kSize);
  const auto gradients = normal_values(kSize, 1);
  Settings with;
  with.weight_decay = 0;
  with.epsilon = 0;
  with.step = {.learning_rate = 0.01F,
               .bias_correction1 = 1 - with.beta1,
               .bias_correction2 = 1 - with.beta2,
               .gradient_scale = 3};
  CpuStream stream;
  const State after = run(stream, {zero, zero, zero}, gradients, with);
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_NEAR(after.parameters[i], -std::copysign(0.01F, gradients[i]), 1e-7F);
  }
}

// The update has no place for rounding to depend on how the run was cut: ranges of an arena give
// what the whole gives.
TEST(AdamW, PiecesHaveTheBitsOfTheWhole) {
  const State before = state_of(1000);
  const auto gradients = normal_values(1000, 4);
  const Settings with;
  CpuStream stream;
  const State whole = run(stream, before, gradients, with);
  const auto piece = [](const std::vector<float>& values, int64_t begin, int64_t end) {
    return std::vector<float>(values.begin() + begin, values.begin() + end);
  };
  for (int64_t begin = 0; begin < 1000; begin += 37) {
    const int64_t end = std::min<int64_t>(1000, begin + 37);
    const State part = run(stream,
                           {piece(before.parameters, begin, end), piece(before.m, begin, end),
                            piece(before.v, begin, end)},
                           piece(gradients, begin, end), with);
    expect_same_bits("parameters", part.parameters, piece(whole.parameters, begin, end));
    expect_same_bits("m", part.m, piece(whole.m, begin, end));
    expect_same_bits("v", part.v, piece(whole.v, begin, end));
  }
}

}  // namespace
}  // namespace lockstep
