#include "core/optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/device/cpu_device.h"
#include "core/model/param_table.h"

namespace lockstep {
namespace {

GptConfig small() {
  return {.vocab_size = 65, .block_size = 33, .n_layer = 2, .n_head = 3, .n_embd = 15};
}

/// AdamW in double, tensor by tensor, as Loshchilov and Hutter's algorithm 2 is written.
class ReferenceAdamW {
 public:
  ReferenceAdamW(const ParamTable& table, const AdamWOptions& options,
                 const std::vector<float>& parameters)
      : p(parameters.begin(), parameters.end()),
        table_(table),
        options_(options),
        m_(p.size()),
        v_(p.size()) {}

  void step(int64_t t, double rate, const std::vector<float>& gradients) {
    double squares = 0;
    for (const float g : gradients) {
      squares += static_cast<double>(g) * g;
    }
    const double norm = std::sqrt(squares);
    const double clip =
        options_.grad_clip > 0 && norm > options_.grad_clip ? options_.grad_clip / norm : 1.0;
    for (const ParamSpec& spec : table_.specs()) {
      const double decay = spec.shape.size() == 2 ? options_.weight_decay : 0.0;
      for (auto i = static_cast<size_t>(spec.range.begin); i < static_cast<size_t>(spec.range.end);
           ++i) {
        const double g = clip * gradients[i];
        m_[i] = options_.beta1 * m_[i] + (1 - options_.beta1) * g;
        v_[i] = options_.beta2 * v_[i] + (1 - options_.beta2) * g * g;
        const double m_hat = m_[i] / (1 - std::pow(options_.beta1, static_cast<double>(t)));
        const double v_hat = v_[i] / (1 - std::pow(options_.beta2, static_cast<double>(t)));
        p[i] -= rate * (m_hat / (std::sqrt(v_hat) + options_.epsilon) + decay * p[i]);
      }
    }
  }

  std::vector<double> p;

 private:
  const ParamTable& table_;
  AdamWOptions options_;
  std::vector<double> m_;
  std::vector<double> v_;
};

/// N(0, stddev) in every tensor and zero in the gaps.
std::vector<float> gradients_of(const ParamTable& table, uint64_t step, double stddev) {
  std::vector<float> gradients(static_cast<size_t>(table.arena_size()));
  for (const ParamSpec& spec : table.specs()) {
    for (int64_t i = spec.range.begin; i < spec.range.end; ++i) {
      gradients[static_cast<size_t>(i)] =
          static_cast<float>(stddev * random_normal(99, step, static_cast<uint64_t>(i)));
    }
  }
  return gradients;
}

double largest_difference_after_steps(const AdamWOptions& options, double stddev) {
  const ParamTable table(small());
  std::vector<float> parameters = initial_parameters(table, 1);
  ReferenceAdamW reference(table, options, parameters);
  CpuStream stream(2);
  Optimizer<CpuDevice> optimizer(stream, table, options);
  CpuBuffer<float> arena(table.arena_size());
  CpuBuffer<float> gradient_arena(table.arena_size());
  copy_from_host(stream, arena.view(), parameters.data());
  for (int64_t step = 0; step < 10; ++step) {
    const std::vector<float> gradients = gradients_of(table, static_cast<uint64_t>(step), stddev);
    copy_from_host(stream, gradient_arena.view(), gradients.data());
    const double rate = 1e-2 / static_cast<double>(step + 1);
    AdamWStep scalars = optimizer.scalars(step, rate);
    optimizer.step(stream, {&scalars, 1}, arena.view(), gradient_arena.view());
    reference.step(step + 1, rate, gradients);
  }
  double largest = 0;
  double difference = 0;
  for (int64_t i = 0; i < table.arena_size(); ++i) {
    const double expected = reference.p[static_cast<size_t>(i)];
    largest = std::max(largest, std::abs(expected));
    difference = std::max(difference, std::abs(expected - static_cast<double>(arena.view()[i])));
  }
  return difference / largest;
}

// Ten updates in float round to a few 1e-7 of the largest parameter.
constexpr double kTolerance = 2e-6;

TEST(Optimizer, FollowsAdamWInDouble) {
  EXPECT_LT(largest_difference_after_steps({.grad_clip = 0}, 1e-3), kTolerance);
}

TEST(Optimizer, ClipsTheGlobalNorm) {
  EXPECT_LT(largest_difference_after_steps({.grad_clip = 1.0}, 1.0), kTolerance);
  EXPECT_LT(largest_difference_after_steps({.grad_clip = 1.0}, 1e-6), kTolerance);
}

TEST(Optimizer, FollowsItsOptions) {
  EXPECT_LT(
      largest_difference_after_steps(
          {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 2.0, .grad_clip = 0.5},
          0.1),
      kTolerance);
}

TEST(Optimizer, LeavesGapsAndPaddingZero) {
  const ParamTable table(small());
  CpuStream stream;
  CpuBuffer<float> arena(table.arena_size());
  CpuBuffer<float> gradients(table.arena_size());
  const std::vector<float> start = initial_parameters(table, 1);
  copy_from_host(stream, arena.view(), start.data());
  Optimizer<CpuDevice> optimizer(stream, table, {});
  AdamWStep scalars = optimizer.scalars(0, 1e-3);
  optimizer.step(stream, {&scalars, 1}, arena.view(), gradients.view());
  for (const ParamSpec& spec : table.specs()) {
    for (int64_t i = 0; i < spec.init_size; ++i) {
      arena.view()[spec.range.begin + i] = 0;
    }
  }
  EXPECT_TRUE(
      std::all_of(arena.view().begin(), arena.view().end(), [](float x) { return x == 0.0F; }));
}

TEST(Optimizer, ReportsTheNormAndLeavesTheStateWhenItIsNotFinite) {
  const ParamTable table(small());
  CpuStream stream;
  Optimizer<CpuDevice> optimizer(stream, table, {});
  CpuBuffer<float> arena(table.arena_size());
  CpuBuffer<float> gradients(table.arena_size());
  const auto step = [&] {
    AdamWStep scalars = optimizer.scalars(0, 1e-3);
    optimizer.step(stream, {&scalars, 1}, arena.view(), gradients.view());
    return std::sqrt(optimizer.squared_gradient_norm()[0]);
  };
  const auto state = [&] {
    std::vector<float> values;
    for (const CpuView<float> view : {arena.view(), optimizer.m(), optimizer.v()}) {
      values.insert(values.end(), view.begin(), view.end());
    }
    return values;
  };
  gradients.view()[5] = 3.0F;
  gradients.view()[table.arena_size() / 2] = -4.0F;
  EXPECT_DOUBLE_EQ(step(), 5.0);
  EXPECT_DOUBLE_EQ(optimizer.norm(stream, gradients.view()), 5.0);
  const std::vector<float> before = state();
  gradients.view()[7] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(step()));
  gradients.view()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(step()));
  EXPECT_EQ(state(), before);
}

}  // namespace
}  // namespace lockstep
