#include "kernels/fingerprint.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "support/op_check.h"

namespace lockstep {
namespace {

uint64_t fingerprint_on(int threads, const std::vector<float>& values) {
  CpuStream stream(threads);
  std::vector<float> pieces(kFingerprintPieces);
  fingerprint(stream, {{pieces.data(), kFingerprintPieces},
                       {values.data(), static_cast<int64_t>(values.size())}});
  for (const float piece : pieces) {
    EXPECT_TRUE(piece >= 0 && piece < 65536);
  }
  return fingerprint_of(pieces.data());
}

TEST(Fingerprint, IsTheSumOfItsTerms) {
  const std::vector<float> values = normal_values(70000, 1);
  uint64_t expected = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    expected += fingerprint_term(std::bit_cast<uint32_t>(values[i]), static_cast<int64_t>(i));
  }
  EXPECT_EQ(fingerprint_on(1, values), expected);
  EXPECT_EQ(fingerprint_on(3, values), expected);
}

TEST(Fingerprint, ChangesWithEveryBitAndPlace) {
  std::vector<float> values = normal_values(300, 2);
  std::set<uint64_t> seen = {fingerprint_on(1, values)};
  size_t variants = 1;
  for (size_t i = 0; i < values.size(); i += 13) {
    for (int bit = 0; bit < 32; ++bit) {
      std::vector<float> other = values;
      other[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(values[i]) ^ 1U << bit);
      seen.insert(fingerprint_on(1, other));
      ++variants;
    }
    std::vector<float> swapped = values;
    std::swap(swapped[i], swapped[(i + 1) % values.size()]);
    seen.insert(fingerprint_on(1, swapped));
    ++variants;
  }
  values.push_back(0.0F);
  seen.insert(fingerprint_on(1, values));
  EXPECT_EQ(seen.size(), variants + 1);
}

TEST(Fingerprint, TakesNoPieceForNothing) {
  const std::vector<float> pieces = {std::nanf(""), -1.0F, 65536.0F, 2.0F};
  EXPECT_EQ(fingerprint_of(pieces.data()), uint64_t{2} << 48U);
}

}  // namespace
}  // namespace lockstep
