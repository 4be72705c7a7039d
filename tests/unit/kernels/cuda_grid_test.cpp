// How many blocks a grid can have along its second axis, without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "kernels/cuda/grid.h"
#include "support/error_of.h"

namespace lockstep::cuda {
namespace {

using ::testing::HasSubstr;

TEST(CudaGrid, TilesCoverEveryRow) {
  EXPECT_EQ(blocks_down(0, 64, "rows"), 0U);
  EXPECT_EQ(blocks_down(64, 64, "rows"), 1U);
  EXPECT_EQ(blocks_down(65, 64, "rows"), 2U);
  EXPECT_EQ(blocks_down(65535 * 64, 64, "rows"), 65535U);
}

TEST(CudaGrid, RefusesMoreThanItsSecondAxisHas) {
  const std::string error =
      error_of<UnsupportedError>([] { blocks_down(65535 * 64 + 1, 64, "rows"); });
  EXPECT_THAT(error, HasSubstr("4194241 rows"));
  EXPECT_THAT(error, HasSubstr("at most 4194240"));
}

}  // namespace
}  // namespace lockstep::cuda
