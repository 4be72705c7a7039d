#include "kernels/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

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
  std::vector<uint8_t> decays = {};  // empty: of all

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
                 .decays = {with.decays.data(), static_cast<int64_t>(with.decays.size())},
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

// An arena in one call has the bits of its tensors one by one, decayed or not.
TEST(AdamW, DecaysTheBlocksThatAreMarked) {
  for (const int64_t size : {int64_t{1}, int64_t{64}, int64_t{40000}, int64_t{40001}}) {
    const State before = state_of(size);
    const auto gradients = normal_values(size, 4);
    Settings with;
    CpuStream stream(2);
    const State all = run(stream, before, gradients, with);
    Settings without = with;
    without.weight_decay = 0;
    const State none = run(stream, before, gradients, without);
    for (size_t i = 0; i < static_cast<size_t>((size + 63) / 64); ++i) {
      with.decays.push_back(i % 3 == 1 || i % 7 == 6 ? 1 : 0);
    }
    const State mixed = run(stream, before, gradients, with);
    std::vector<float> expected;
    for (size_t i = 0; i < gradients.size(); ++i) {
      expected.push_back(with.decays[i / 64] != 0 ? all.parameters[i] : none.parameters[i]);
    }
    expect_same_bits("parameters", mixed.parameters, expected);
    expect_same_bits("m", mixed.m, all.m);
    expect_same_bits("v", mixed.v, all.v);
  }
}

float clip_scale_of(double squared_norm, double grad_clip) {
  AdamWStep step;
  CpuStream stream;
  clip_scale(stream,
             {.step = {&step, 1}, .squared_norm = {&squared_norm, 1}, .grad_clip = grad_clip});
  return step.gradient_scale;
}

TEST(ClipScale, BringsALargerNormDownToTheClip) {
  EXPECT_EQ(clip_scale_of(16.0, 0.5), static_cast<float>(0.5 / (4.0 + 1e-6)));
  EXPECT_EQ(clip_scale_of(0.25, 1.0), 1.0F);
  EXPECT_EQ(clip_scale_of(0.0, 1.0), 1.0F);
  EXPECT_EQ(clip_scale_of(16.0, 0.0), 1.0F);
}

TEST(ClipScale, OfANormThatIsNotFiniteStopsTheUpdate) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double squared : {infinity, std::numeric_limits<double>::quiet_NaN()}) {
    for (const double grad_clip : {0.0, 1.0}) {
      const float scale = clip_scale_of(squared, grad_clip);
      EXPECT_TRUE(std::isnan(scale));
      Settings with;
      with.step.gradient_scale = scale;
      CpuStream stream;
      const State before = state_of(100);
      const State after = run(stream, before, normal_values(100, 4), with);
      expect_same_bits("parameters", after.parameters, before.parameters);
      expect_same_bits("m", after.m, before.m);
      expect_same_bits("v", after.v, before.v);
    }
  }
}

}  // namespace
}  // namespace lockstep
