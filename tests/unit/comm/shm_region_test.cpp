#include "comm/shm_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

#include "core/base/error.h"

namespace lockstep {
namespace {

/// No file may grow beyond 64 MiB while it lives: a region that asked the kernel for what this host
/// does not have would make it kill processes, not the test fail.
class FileSizeLimit {
 public:
  FileSizeLimit() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {rlim_t{64} << 20, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

std::string refusal(int64_t elements) {
  const FileSizeLimit limit;
  try {
    ShmRegion::create(elements);
    return {};
  } catch (const OutOfMemoryError& error) {
    return error.what();
  }
}

TEST(ShmRegion, RefusesMoreThanTheHostHasBeforeItTakesAny) {
  EXPECT_THAT(refusal(int64_t{1} << 50), testing::HasSubstr("MiB are available"));
}

TEST(ShmRegion, SaysWhyTheKernelRefuses) {
  EXPECT_THAT(refusal(int64_t{32} << 20), testing::HasSubstr("File too large"));
}

TEST(ShmRegion, IsZeroedAndWritableToItsEnd) {
  constexpr int64_t kElements = (int64_t{20} << 20) + 3;  // two pieces, the second ragged
  const ShmRegion region = ShmRegion::create(kElements);
  EXPECT_EQ(region.window()[kElements - 1], 0.0F);
  region.window()[kElements - 1] = 1.0F;
}

}  // namespace
}  // namespace lockstep
