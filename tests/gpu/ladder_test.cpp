// Every rung of the ladder against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/device/cuda_device.h"
#include "kernels/cuda/ladder/rung.h"
#include "support/naive_gemm.h"

namespace lockstep {
namespace {

using naive::GemmOperands;

struct Size {
  int64_t m;
  int64_t n;
  int64_t k;
};

// Below, at and beyond the edges of every tile; none of k; whole tiles and several of them.
constexpr Size kSizes[] = {{1, 1, 1},       {3, 65, 127},     {65, 129, 3},   {127, 3, 1000},
                           {129, 1000, 65}, {1000, 127, 129}, {256, 384, 96}, {5, 7, 0}};

std::vector<float> normal(int64_t size, uint64_t stream) {
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>(random_normal(5, stream, static_cast<uint64_t>(i))));
  }
  return values;
}

GemmOperands operands(const Size& size, Transpose trans_a, Transpose trans_b) {
  GemmOperands in;
  in.m = size.m;
  in.n = size.n;
  in.k = size.k;
  in.trans_a = trans_a;
  in.trans_b = trans_b;
  in.a = normal(size.m * size.k, 0);
  in.b = normal(size.k * size.n, 1);
  return in;
}

// To the nearest value with ten bits of mantissa.
std::vector<float> in_tf32(std::vector<float> values) {
  for (float& value : values) {
    value = std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000U) & ~0x1FFFU);
  }
  return values;
}

// max |value - reference| / max |reference|; NaN when any value is.
template <class Real>
double error(const std::vector<Real>& values, const std::vector<double>& reference) {
  double worst = 0;
  double largest = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double off = std::abs(static_cast<double>(values[i]) - reference[i]);
    if (std::isnan(off)) {
      return off;
    }
    worst = std::max(worst, off);
    largest = std::max(largest, std::abs(reference[i]));
  }
  return largest == 0 ? worst : worst / largest;
}

// Device memory with poison around it, from the `shift`-th float on: 16-byte aligned or not.
class Guarded {
 public:
  Guarded(CudaStream& stream, const std::vector<float>& values, int64_t shift)
      : stream_(stream),
        begin_(kGuard + shift),
        memory_(static_cast<int64_t>(values.size()) + 2 * kGuard + shift) {
    host_.assign(static_cast<size_t>(memory_.size()), std::nanf(""));
    std::copy(values.begin(), values.end(), host_.begin() + begin_);
    size_ = static_cast<int64_t>(values.size());
    copy_from_host(stream_, memory_.view(), host_.data());
    stream_.synchronize();
  }
  CudaView<float> view() { return memory_.view().subview({begin_, begin_ + size_}); }
  std::vector<float> values() {
    std::vector<float> all(host_.size());
    copy_to_host(stream_, all.data(), std::as_const(memory_).view());
    stream_.synchronize();
    for (size_t i = 0; i < all.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (at < begin_ || at >= begin_ + size_) {
        EXPECT_TRUE(std::isnan(all[i])) << "written outside of c, at " << at - begin_;
      }
    }
    return {all.begin() + begin_, all.begin() + begin_ + size_};
  }

 private:
  static constexpr int64_t kGuard = 64;
  CudaStream& stream_;
  int64_t begin_;
  int64_t size_ = 0;
  CudaBuffer<float> memory_;
  std::vector<float> host_;
};

std::vector<float> product_of(CudaStream& stream, const Rung& rung, const GemmOperands& in,
                              int64_t shift) {
  Guarded a(stream, in.a, shift);
  Guarded b(stream, in.b, shift);
  Guarded c(stream, std::vector<float>(static_cast<size_t>(in.m * in.n), std::nanf("")), shift);
  rung.launch(stream, {.m = in.m,
                       .n = in.n,
                       .k = in.k,
                       .trans_a = in.trans_a,
                       .trans_b = in.trans_b,
                       .a = a.view(),
                       .b = b.view(),
                       .c = c.view()});
  stream.synchronize();
  return c.values();
}

void check_rungs(const Size& size, Transpose trans_a, Transpose trans_b, int64_t shift) {
  CudaStream stream;
  const GemmOperands in = operands(size, trans_a, trans_b);
  GemmOperands rounded = in;
  rounded.a = in_tf32(in.a);
  rounded.b = in_tf32(in.b);
  const std::vector<double> reference = naive::gemm_product<double>(in);
  // Twice what the plain loop errs in the same precision, and the rounding of one result.
  const double fp32_bound = 2 * error(naive::gemm_product<float>(in), reference) + 0x1p-23;
  const double tf32_bound = 2 * error(naive::gemm_product<float>(rounded), reference) + 0x1p-23;
  for (const Rung& rung : ladder()) {
    SCOPED_TRACE(::testing::Message()
                 << "rung " << rung.number << ", " << size.m << " x " << size.n << " x " << size.k
                 << (trans_a == Transpose::kYes ? " T" : " N")
                 << (trans_b == Transpose::kYes ? "T" : "N") << ", shift " << shift);
    const std::vector<float> once = product_of(stream, rung, in, shift);
    EXPECT_LE(error(once, reference), rung.tensor_cores ? tf32_bound : fp32_bound);
    const std::vector<float> again = product_of(stream, rung, in, shift);
    EXPECT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)), 0)
        << "two runs differ";
  }
}

class Ladder : public ::testing::Test {
 protected:
  void SetUp() override { require_cuda_device(); }
};

class LadderSizes : public Ladder, public ::testing::WithParamInterface<Size> {};

TEST_P(LadderSizes, MatchesDoublePrecisionInEveryCase) {
  for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
      check_rungs(GetParam(), trans_a, trans_b, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, LadderSizes, ::testing::ValuesIn(kSizes), [](const auto& test) {
  return std::to_string(test.param.m) + "x" + std::to_string(test.param.n) + "x" +
         std::to_string(test.param.k);
});

TEST_F(Ladder, NeedsNoAlignment) {
  for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
      check_rungs({128, 128, 64}, trans_a, trans_b, 1);
    }
  }
}

TEST_F(Ladder, RefusesWhatItDoesNotCompute) {
  CudaStream stream;
  CudaBuffer<float> memory(16);
  const Gemm<CudaDevice> fits = {.m = 4,
                                 .n = 4,
                                 .k = 4,
                                 .a = std::as_const(memory).view(),
                                 .b = std::as_const(memory).view(),
                                 .c = memory.view()};
  Gemm<CudaDevice> large = fits;
  large.k = 5;
  Gemm<CudaDevice> accumulating = fits;
  accumulating.accumulate = true;
  for (const Rung& rung : ladder()) {
    EXPECT_THROW(rung.launch(stream, large), InternalError);
    EXPECT_THROW(rung.launch(stream, accumulating), InternalError);
  }
}

// What a change of a kernel or of the compiler must not lose without a word. The bounds are those
// of sm_90; spilled bytes and blocks are stated in the rungs' files.
TEST_F(Ladder, KeepsItsRegistersAndResidentBlocks) {
  if (cuda_facts(0).compute_capability != 90) {
    GTEST_SKIP() << "the bounds are those of compute capability 9.0";
  }
  for (const Rung& rung : ladder()) {
    for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
      for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
        SCOPED_TRACE(rung.number);
        const Rung::Resources uses = rung.resources(trans_a, trans_b);
        EXPECT_LE(uses.spilled_bytes, rung.number == 11 ? 64 : rung.number == 9 ? 16 : 0);
        EXPECT_GE(uses.resident_blocks, rung.number >= 8 && rung.number <= 11 ? 2 : 1);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
