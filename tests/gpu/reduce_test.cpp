// The ops on whole buffers against references: sums, norms, AdamW.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gpu/guarded.h"
#include "kernels/cuda/ops.h"
#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

using Floats = std::vector<float>;

class GpuReduce : public ::testing::Test {
 protected:
  void SetUp() override { require_cuda_device(); }
};

Floats column_sum_on_gpu(int64_t columns, const Floats& in, const Floats& start, bool accumulate,
                         int64_t shift) {
  CudaStream stream;
  Guarded<float> out(stream, start, shift);
  Guarded<float> from(stream, in, shift);
  column_sum(stream, {.rows = static_cast<int64_t>(in.size()) / columns,
                      .columns = columns,
                      .out = out.view(),
                      .in = from.view(),
                      .accumulate = accumulate});
  return out.values();
}

TEST_F(GpuReduce, ColumnSumMatchesTheReferenceAndAddsAFinishedSum) {
  struct Case {
    int64_t rows;
    int64_t columns;
    int64_t shift;
  };
  for (const auto [rows, columns, shift] :
       {Case{1, 1, 0}, Case{0, 5, 0}, Case{0, 128, 0}, Case{3, 7, 0}, Case{384, 128, 0},
        Case{1000, 33, 0}, Case{65, 1537, 0}, Case{4096, 384, 0}, Case{4097, 1536, 0},
        Case{1000, 128, 1}, Case{20, 20000, 0}, Case{100000, 4, 0}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " at " << shift);
    const auto in = normal_values(rows * columns, 1);
    const Floats poison(static_cast<size_t>(columns), std::nanf(""));
    const auto out = column_sum_on_gpu(columns, in, poison, false, shift);
    expect_close("out", out, naive::column_sum(columns, in),
                 naive::column_sum(columns, to_double(in)));
    expect_same_bits("two runs", out, column_sum_on_gpu(columns, in, poison, false, shift));
    Floats expected = normal_values(columns, 2);
    const auto added = column_sum_on_gpu(columns, in, expected, true, shift);
    for (size_t c = 0; c < expected.size(); ++c) {
      expected[c] += out[c];
    }
    expect_same_bits("accumulated", added, expected);
  }
}

double squared_norm_on_gpu(const Floats& x, int64_t shift) {
  CudaStream stream;
  Guarded<double> out(stream, 1);
  Guarded<float> from(stream, x, shift);
  squared_norm(stream, {.out = out.view(), .x = from.view()});
  return out.values()[0];
}

TEST_F(GpuReduce, SquaredNormMatchesTheReference) {
  for (const int64_t shift : {0, 1}) {
    for (const int64_t size : {0, 1, 15, 4096, 100003, 1000000, 5000004}) {
      const auto x = normal_values(size, 1);
      double reference = 0;
      for (const float value : x) {
        reference += static_cast<double>(value) * static_cast<double>(value);
      }
      const double out = squared_norm_on_gpu(x, shift);
      EXPECT_NEAR(out, reference, 1e-12 * reference) << size;
      EXPECT_EQ(std::bit_cast<uint64_t>(out),
                std::bit_cast<uint64_t>(squared_norm_on_gpu(x, shift)));
    }
  }
}

// Squares that overflow or vanish in float; what is not finite.
TEST_F(GpuReduce, SquaredNormTakesSquaresInDoubleAndShowsANan) {
  for (const float value : {1e30F, 1e-30F}) {
    const double reference = 100 * static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(squared_norm_on_gpu(Floats(100, value), 0) / reference, 1.0, 1e-13);
  }
  auto x = normal_values(10007, 1);
  x[10003] = std::nanf("");
  EXPECT_TRUE(std::isnan(squared_norm_on_gpu(x, 0)));
}

/// What `ranks` ranks find together, each the sums of its shard.
double norm_by(int64_t ranks, const Floats& x, int64_t shift) {
  const SegmentSums layout{std::ssize(x), ranks};
  CudaStream stream;
  Guarded<double> sums(stream, layout.size());
  Guarded<double> out(stream, 1);
  Guarded<float> from(stream, x, shift);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    segment_norms(stream, {.sums = sums.view(), .x = from.view(), .shard = {rank, ranks}});
  }
  norm_of_segments(stream, {.out = out.view(), .sums = sums.view(), .layout = layout});
  sums.values();
  return out.values()[0];
}

TEST_F(GpuReduce, NormsOfSegmentsHaveTheSameBitsForAnyNumberOfRanks) {
  constexpr int64_t kS = kSegmentElements;
  for (const int64_t shift : {0, 1}) {
    for (const int64_t size : {int64_t{0}, int64_t{4}, kS, kS + 3, 7 * kS - 1, 1500 * kS + 100}) {
      const Floats x = normal_values(size, 1);
      const double one = squared_norm_on_gpu(x, shift);
      for (const int64_t ranks : {1, 2, 3, 5}) {
        EXPECT_EQ(std::bit_cast<uint64_t>(norm_by(ranks, x, shift)), std::bit_cast<uint64_t>(one))
            << size << " by " << ranks;
      }
    }
  }
}

TEST_F(GpuReduce, SumMatchesTheReference) {
  for (const int64_t size : {0, 1, 15, 384, 100003, 2000000}) {
    const auto x = normal_values(size, 1);
    double reference = 0;
    for (const float value : x) {
      reference += static_cast<double>(value);
    }
    CudaStream stream;
    Guarded<float> out(stream, 1);
    Guarded<float> from(stream, x);
    sum(stream, {.out = out.view(), .x = from.view(), .scale = 0.125});
    EXPECT_FLOAT_EQ(out.values()[0], static_cast<float>(0.125 * reference)) << size;
  }
}

TEST_F(GpuReduce, AddIntoIsTheFloatSumAtEveryAlignmentAndLength) {
  CudaStream stream;
  for (const int64_t shift : {0, 1, 3}) {
    for (const int64_t other_shift : {0, 2}) {
      for (const int64_t size : {0, 1, 7, 16, 1000, 100003, 400000}) {
        const auto to = normal_values(size, 1);
        const auto from = normal_values(size, 2);
        Guarded<float> out(stream, to, shift);
        Guarded<float> in(stream, from, other_shift);
        add_into(stream, out.view(), in.view());
        auto expected = to;
        for (size_t i = 0; i < to.size(); ++i) {
          expected[i] += from[i];
        }
        expect_same_bits("sum", out.values(), expected);
      }
    }
  }
}

using State = naive::AdamWState<float>;

struct AdamWCase {
  int64_t size;
  int64_t shift = 0;
  AdamWStep step = {.learning_rate = 1e-3F,
                    .bias_correction1 = 0.271F,
                    .bias_correction2 = 0.0297F,
                    .gradient_scale = 0.5F};
  std::vector<uint8_t> decays = {};
  float weight_decay = 0.1F;
};

State state_of(int64_t size) {
  State state{normal_values(size, 1), normal_values(size, 2, 0.1), normal_values(size, 3, 0.1)};
  for (float& v : state.v) {
    v *= v;
  }
  return state;
}

State adamw_on_gpu(const AdamWCase& c) {
  CudaStream stream;
  const State before = state_of(c.size);
  Guarded<float> parameters(stream, before.parameters, c.shift);
  Guarded<float> m(stream, before.m, c.shift);
  Guarded<float> v(stream, before.v, c.shift);
  Guarded<float> gradients(stream, normal_values(c.size, 4), c.shift);
  Guarded<uint8_t> decays(stream, c.decays);
  CudaBuffer<AdamWStep> step(1);
  copy_from_host(stream, step.view(), &c.step);
  adamw(stream, {.parameters = parameters.view(),
                 .m = m.view(),
                 .v = v.view(),
                 .gradients = gradients.view(),
                 .step = step.view(),
                 .decays = decays.view(),
                 .beta2 = 0.95F,
                 .weight_decay = c.weight_decay});
  return {parameters.values(), m.values(), v.values()};
}

State adamw_on_cpu(const AdamWCase& c) {
  CpuStream stream;
  State state = state_of(c.size);
  const Floats gradients = normal_values(c.size, 4);
  const auto view = [](Floats& values) {
    return CpuView<float>{values.data(), static_cast<int64_t>(values.size())};
  };
  adamw(stream, {.parameters = view(state.parameters),
                 .m = view(state.m),
                 .v = view(state.v),
                 .gradients = view_of(gradients),
                 .step = {&c.step, 1},
                 .decays = {c.decays.data(), static_cast<int64_t>(c.decays.size())},
                 .beta2 = 0.95F,
                 .weight_decay = c.weight_decay});
  return state;
}

// The CPU's update is tested against double; it is a fixed sequence of IEEE operations.
TEST_F(GpuReduce, AdamWHasTheBitsOfTheCpu) {
  for (const int64_t size : {1, 17, 64, 1000, 40000, 100003}) {
    for (const int64_t shift : {0, 1}) {
      for (const bool some_decay : {false, true}) {
        SCOPED_TRACE(testing::Message() << size << " at " << shift);
        AdamWCase c = {.size = size, .shift = shift};
        for (int64_t i = 0; some_decay && i < (size + kDecayBlock - 1) / kDecayBlock; ++i) {
          c.decays.push_back(i % 3 == 1 || i % 7 == 6 ? 1 : 0);
        }
        const State out = adamw_on_gpu(c);
        const State expected = adamw_on_cpu(c);
        expect_same_bits("parameters", out.parameters, expected.parameters);
        expect_same_bits("m", out.m, expected.m);
        expect_same_bits("v", out.v, expected.v);
      }
    }
  }
}

// Each rank's shard, one after another on the same arena.
TEST_F(GpuReduce, AdamWOfShardsHasTheBitsOfTheWhole) {
  for (const int64_t size : {int64_t{64}, 3 * kSegmentElements, 7 * kSegmentElements + 1000}) {
    for (const int64_t ranks : {2, 3}) {
      SCOPED_TRACE(testing::Message() << size << " by " << ranks);
      AdamWCase c = {.size = size};
      for (int64_t i = 0; i < (size + kDecayBlock - 1) / kDecayBlock; ++i) {
        c.decays.push_back(i % 3 == 1 || i % 7 == 6 ? 1 : 0);
      }
      CudaStream stream;
      const State before = state_of(size);
      State out = before;
      Guarded<float> parameters(stream, before.parameters);
      Guarded<float> gradients(stream, normal_values(size, 4));
      Guarded<uint8_t> decays(stream, c.decays);
      CudaBuffer<AdamWStep> step(1);
      copy_from_host(stream, step.view(), &c.step);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const ArenaShard shard{rank, ranks};
        const auto moments_of = [&](const Floats& arena) {
          Floats owned;
          shard.for_each_segment(size, [&](Range at, Range /*segment*/) {
            owned.insert(owned.end(), arena.begin() + at.begin, arena.begin() + at.end);
          });
          return owned;
        };
        Guarded<float> m(stream, moments_of(before.m));
        Guarded<float> v(stream, moments_of(before.v));
        adamw(stream, {.parameters = parameters.view(),
                       .m = m.view(),
                       .v = v.view(),
                       .gradients = gradients.view(),
                       .step = step.view(),
                       .decays = decays.view(),
                       .beta2 = 0.95F,
                       .weight_decay = c.weight_decay,
                       .shard = shard});
        const Floats new_m = m.values();
        const Floats new_v = v.values();
        shard.for_each_segment(size, [&](Range at, Range segment) {
          std::copy_n(new_m.begin() + segment.begin, segment.size(), out.m.begin() + at.begin);
          std::copy_n(new_v.begin() + segment.begin, segment.size(), out.v.begin() + at.begin);
        });
      }
      const State expected = adamw_on_cpu(c);
      expect_same_bits("parameters", parameters.values(), expected.parameters);
      expect_same_bits("m", out.m, expected.m);
      expect_same_bits("v", out.v, expected.v);
    }
  }
}

TEST_F(GpuReduce, AdamWLeavesEverythingWhenTheScaleIsNan) {
  AdamWCase c = {.size = 1000};
  c.step.gradient_scale = std::nanf("");
  const State out = adamw_on_gpu(c);
  const State before = state_of(c.size);
  expect_same_bits("parameters", out.parameters, before.parameters);
  expect_same_bits("m", out.m, before.m);
  expect_same_bits("v", out.v, before.v);
}

TEST_F(GpuReduce, ClipScaleHasTheBitsOfTheCpu) {
  const double infinity = std::numeric_limits<double>::infinity();
  CudaStream stream;
  CpuStream host;
  for (const double squared : {16.0, 0.25, 0.0, 2.0, 1e300, infinity, std::nan("")}) {
    for (const double grad_clip : {0.0, 0.5, 1.0}) {
      AdamWStep expected{.learning_rate = 1, .bias_correction1 = 2, .bias_correction2 = 3};
      CudaBuffer<AdamWStep> step(1);
      copy_from_host(stream, step.view(), &expected);
      Guarded<double> norm(stream, std::vector<double>{squared});
      clip_scale(stream,
                 {.step = step.view(), .squared_norm = norm.view(), .grad_clip = grad_clip});
      AdamWStep found;
      copy_to_host(stream, &found, std::as_const(step).view());
      stream.synchronize();
      clip_scale(host,
                 {.step = {&expected, 1}, .squared_norm = {&squared, 1}, .grad_clip = grad_clip});
      EXPECT_EQ(found.learning_rate, 1);
      EXPECT_EQ(found.bias_correction1, 2);
      EXPECT_EQ(found.bias_correction2, 3);
      if (std::isnan(expected.gradient_scale)) {
        EXPECT_TRUE(std::isnan(found.gradient_scale)) << squared;
      } else {
        EXPECT_EQ(found.gradient_scale, expected.gradient_scale) << squared;
      }
    }
  }
}

TEST_F(GpuReduce, FingerprintIsTheCpus) {
  for (const int64_t size : {0, 1, 255, 100003, 10000000}) {
    const Floats values = normal_values(size, 5);
    Floats expected(kFingerprintPieces);
    CpuStream cpu;
    fingerprint(cpu, {{expected.data(), kFingerprintPieces}, {values.data(), size}});
    for (const int64_t shift : {0, 1}) {
      CudaStream stream;
      Guarded<float> pieces(stream, Floats(kFingerprintPieces, std::nanf("")), 0);
      Guarded<float> x(stream, values, shift);
      fingerprint(stream, {pieces.view(), x.view()});
      expect_same_bits("pieces", pieces.values(), expected);
    }
  }
}

}  // namespace
}  // namespace lockstep
