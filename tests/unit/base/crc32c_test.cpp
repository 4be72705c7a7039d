#include "core/base/crc32c.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace lockstep {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, MatchesThePublishedCheckValue) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
}

TEST(Crc32c, MatchesTheVectorsOfRfc3720) {
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43U);
}

TEST(Crc32c, ContinuesFromTheBytesBefore) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes_of(text.substr(cut)), crc32c(bytes_of(text.substr(0, cut)))),
              crc32c(bytes_of(text)));
  }
}

}  // namespace
}  // namespace lockstep
