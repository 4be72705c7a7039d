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

/// An arena, what `ranks` optimizers of a shard each have in common of it, and their steps.
class ShardedAdamW {
 public:
  ShardedAdamW(const ParamTable& table, const AdamWOptions& options, int64_t ranks,
               std::vector<float> parameters)
      : parameters_(std::move(parameters)), sums_(SegmentSums{table.arena_size(), ranks}.size()) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      optimizers_.emplace_back(
          stream_, table, options,
          UpdateShard<CpuDevice>{.shard = {rank, ranks}, .segment_sums = sums_.view()});
    }
  }

  /// In parts of `part` elements.
  void step(int64_t number, const std::vector<float>& gradients, int64_t part) {
    const CpuView<const float> g(gradients.data(), std::ssize(gradients));
    const CpuView<float> p(parameters_.data(), std::ssize(parameters_));
    for (Optimizer<CpuDevice>& optimizer : optimizers_) {
      optimizer.measure(stream_, g);
    }
    for (Optimizer<CpuDevice>& optimizer : optimizers_) {
      AdamWStep scalars = optimizer.scalars(number, 1e-2);
      optimizer.clip(stream_, {&scalars, 1});
      for (int64_t begin = 0; begin < p.size(); begin += part) {
        optimizer.update(stream_, {&scalars, 1}, p, g, {begin, std::min(p.size(), begin + part)});
      }
    }
  }

  const std::vector<float>& parameters() const { return parameters_; }
  /// Both moments' elements, those of the whole arena.
  std::vector<float> moments() {
    const int64_t size = std::ssize(parameters_);
    std::vector<float> whole(static_cast<size_t>(2 * size));
    for (Optimizer<CpuDevice>& optimizer : optimizers_) {
      optimizer.shard().for_each_segment(size, [&](Range at, Range segment) {
        for (int64_t i = 0; i < at.size(); ++i) {
          whole[static_cast<size_t>(at.begin + i)] = optimizer.m()[segment.begin + i];
          whole[static_cast<size_t>(size + at.begin + i)] = optimizer.v()[segment.begin + i];
        }
      });
    }
    return whole;
  }

 private:
  CpuStream stream_{2};
  std::vector<float> parameters_;
  CpuBuffer<double> sums_;
  std::vector<Optimizer<CpuDevice>> optimizers_;
};

TEST(Optimizer, ShardsHaveTheBitsOfTheWhole) {
  // Seven segments and a part of one.
  const ParamTable table(
      {.vocab_size = 65, .block_size = 33, .n_layer = 3, .n_head = 4, .n_embd = 56});
  ASSERT_GT(table.arena_size(), 7 * kSegmentElements);
  const std::vector<float> parameters = initial_parameters(table, 1);
  ShardedAdamW whole(table, {}, 1, parameters);
  ShardedAdamW two(table, {}, 2, parameters);
  ShardedAdamW three(table, {}, 3, parameters);
  for (int64_t step = 0; step < 3; ++step) {
    const std::vector<float> gradients = gradients_of(table, static_cast<uint64_t>(step), 1.0);
    whole.step(step, gradients, table.arena_size());
    two.step(step, gradients, 2 * kSegmentElements);
    three.step(step, gradients, 6 * kSegmentElements);
  }
  EXPECT_EQ(two.parameters(), whole.parameters());
  EXPECT_EQ(three.parameters(), whole.parameters());
  EXPECT_EQ(two.moments(), whole.moments());
  EXPECT_EQ(three.moments(), whole.moments());
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
