#include "comm/gpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "support/error_of.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

VisibleGpus sees(const std::string& host, std::vector<std::string> uuids) {
  return {host, "host-" + host, std::move(uuids)};
}

TEST(GpuChoice, RanksThatSeeTheSameGpusTakeThemInTurn) {
  const std::vector<std::string> both{"g0", "g1"};
  EXPECT_THAT(choose_gpus({sees("a", both), sees("a", both)}, false), ElementsAre(0, 1));
  // Each host counts from its start, whatever the order of the ranks.
  EXPECT_THAT(
      choose_gpus({sees("a", both), sees("b", both), sees("a", both), sees("b", both)}, false),
      ElementsAre(0, 0, 1, 1));
  // CUDA_VISIBLE_DEVICES=1,0 on one of them.
  EXPECT_THAT(choose_gpus({sees("a", both), sees("a", {"g1", "g0"})}, false), ElementsAre(0, 0));
}

TEST(GpuChoice, ARankThatSeesOneOfItsOwnTakesThat) {
  EXPECT_THAT(choose_gpus({sees("a", {"g0"}), sees("a", {"g1"}), sees("b", {"g0"})}, false),
              ElementsAre(0, 0, 0));
}

TEST(GpuChoice, RefusesToShareOneUnlessAsked) {
  const std::vector<std::string> both{"g0", "g1"};
  const std::vector<VisibleGpus> ranks = {sees("b", {"g9"}), sees("a", both), sees("a", both),
                                          sees("a", both)};
  EXPECT_THAT(
      error_of<UsageError>([&] { choose_gpus(ranks, false); }),
      AllOf(HasSubstr("3 ranks on host host-a with 2 visible GPUs"), HasSubstr("ranks 1 and 3"),
            HasSubstr("Start at most 2"), HasSubstr("--share-gpu")));
  EXPECT_THAT(choose_gpus(ranks, true), ElementsAre(0, 0, 1, 0));
}

TEST(GpuChoice, RefusesTwoRanksThatSeeOneAndTheSame) {
  EXPECT_THAT(
      error_of<UsageError>([] {
        choose_gpus({sees("a", {"g1"}), sees("a", {"g1"})}, false);
      }),
      AllOf(HasSubstr("2 ranks on host host-a with 1 visible GPU:"), HasSubstr("ranks 0 and 1")));
}

}  // namespace
}  // namespace lockstep
