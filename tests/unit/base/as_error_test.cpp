#include "core/base/as_error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <string>
#include <system_error>

namespace lockstep {
namespace {

TEST(AsError, KeepsAnErrorAndNamesTheOthers) {
  EXPECT_EQ(as_error(UsageError("words")).code(), ExitCode::kUsage);
  EXPECT_EQ(as_error(std::bad_alloc()).code(), ExitCode::kOutOfMemory);
  EXPECT_EQ(as_error(std::runtime_error("words")).code(), ExitCode::kInternal);
}

TEST(AsError, TellsWhatTheSystemRefused) {
  const auto denied = std::make_error_code(std::errc::permission_denied);
  const Error file = as_error(std::filesystem::filesystem_error("status", "/a/file", denied));
  EXPECT_EQ(file.code(), ExitCode::kIo);
  EXPECT_EQ(std::string(file.what()), "cannot use /a/file: Permission denied");
  const auto full = std::make_error_code(std::errc::no_space_on_device);
  EXPECT_EQ(as_error(std::system_error(full, "cannot write to file")).code(), ExitCode::kIo);
  const auto none = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(as_error(std::system_error(none)).code(), ExitCode::kOutOfMemory);
}

}  // namespace
}  // namespace lockstep
