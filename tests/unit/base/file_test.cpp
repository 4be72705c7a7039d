#include "core/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "core/base/error.h"
#include "support/temporary_folder.h"

namespace lockstep {
namespace {

class ReplaceFile : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(ReplaceFile, MakesAndReplaces) {
  const auto path = folder_ / "a";
  replace_file(path, "first");
  EXPECT_EQ(read_file(path), "first");
  replace_file(path, "2");
  EXPECT_EQ(read_file(path), "2");
}

TEST_F(ReplaceFile, FollowsALink) {
  const auto target = folder_ / "target";
  const auto link = folder_ / "link";
  replace_file(target, "old");
  std::filesystem::create_symlink("target", link);
  replace_file(link, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_file(target), "new");
}

TEST_F(ReplaceFile, WritesToWhatIsNoFile) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  replace_file(pipe, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::array<char, 16> got{};
  EXPECT_EQ(::read(reader, got.data(), got.size()), 7);
  EXPECT_STREQ(got.data(), "through");
  ::close(reader);
  EXPECT_THROW(replace_file(folder_.path(), "x"), IoError);
}

TEST_F(ReplaceFile, IsCheckedWithoutATrace) {
  const auto path = folder_ / "a";
  check_replaceable(path);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  replace_file(path, "kept");
  check_replaceable(path);
  EXPECT_EQ(read_file(path), "kept");
  EXPECT_THROW(check_replaceable(folder_.path()), IoError);
  EXPECT_THROW(check_replaceable(folder_ / "absent/a"), IoError);
}

}  // namespace
}  // namespace lockstep
