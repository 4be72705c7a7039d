#include "core/device/cpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/error_of.h"

namespace lockstep {
namespace {

TEST(CpuDevice, CopiesAsMuchAsTheTargetHolds) {
  CpuBuffer<int> from(3);
  CpuBuffer<int> to(2);
  for (int i = 0; i < 3; ++i) {
    from.view()[i] = i + 1;
  }
  CpuStream stream;
  copy(stream, to.view(), CpuView<const int>(from.view()));
  EXPECT_EQ(to.view()[0], 1);
  EXPECT_EQ(to.view()[1], 2);
}

TEST(CpuDevice, RefusesToCopyWhatTheSourceDoesNotHold) {
  CpuBuffer<int> from(2);
  CpuBuffer<int> to(3);
  CpuStream stream;
  const std::string error =
      error_of<InternalError>([&] { copy(stream, to.view(), CpuView<const int>(from.view())); });
  EXPECT_THAT(error, testing::HasSubstr("a copy of 3 elements from a view of 2"));
}

}  // namespace
}  // namespace lockstep
