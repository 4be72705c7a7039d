#include "trainer/gpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "support/error_of.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(GpuChoice, TakesAGpuForEachRank) {
  check_gpu_choices({{"a", "host-a", 2, "0"}, {"a", "host-a", 2, "1"}}, false);
  // Each process sees one GPU, another one each; and other hosts count from the start.
  check_gpu_choices({{"a", "host-a", 1, "0"}, {"a", "host-a", 1, "1"}, {"b", "host-b", 1, "2"}},
                    false);
}

TEST(GpuChoice, RefusesToShareOneUnlessAsked) {
  const std::vector<GpuChoice> ranks = {{"b", "host-b", 1, "9"},
                                        {"a", "host-a", 2, "0"},
                                        {"a", "host-a", 2, "1"},
                                        {"a", "host-a", 2, "0"}};
  EXPECT_THAT(error_of<UsageError>([&] { check_gpu_choices(ranks, false); }),
              AllOf(HasSubstr("3 ranks on host host-a with 2 visible GPUs"),
                    HasSubstr("ranks 1 and 3"), HasSubstr("--share-gpu")));
  check_gpu_choices(ranks, true);
}

}  // namespace
}  // namespace lockstep
