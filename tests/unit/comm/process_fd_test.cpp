#include "comm/process_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace lockstep {
namespace {

TEST(OpenFdOf, OpensAnewWhatADescriptorRefersTo) {
  const UniqueFd file = open_file("/proc/self/exe", O_RDONLY);
  const UniqueFd again = open_fd_of(::getpid(), file.get(), O_RDONLY);
  ASSERT_TRUE(again);
  EXPECT_NE(again.get(), file.get());
  EXPECT_EQ(::fcntl(again.get(), F_GETFD), FD_CLOEXEC);
  struct stat one {};
  struct stat other {};
  ASSERT_EQ(::fstat(file.get(), &one), 0);
  ASSERT_EQ(::fstat(again.get(), &other), 0);
  EXPECT_EQ(one.st_ino, other.st_ino);
}

TEST(OpenFdOf, IsEmptyWhereThereIsNothing) {
  EXPECT_FALSE(open_fd_of(::getpid(), 100000, O_RDONLY));
  EXPECT_FALSE(open_fd_of(-1, 0, O_RDONLY));
}

TEST(OpenFdOf, DoesNotWaitForTheOtherEndOfAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  in.reset();
  EXPECT_TRUE(open_fd_of(::getpid(), out.get(), O_RDONLY));
}

}  // namespace
}  // namespace lockstep
