#include "trainer/continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/base/error.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::function<void(RunIdentity&)>& change) {
  TrainingState saved;
  saved.model.vocab_size = 65;
  saved.seed = 1;
  saved.global_batch = 12;
  saved.dataset_fingerprint = "aaaa";
  RunIdentity run{saved.model, saved.seed, saved.global_batch, saved.dataset_fingerprint};
  change(run);
  try {
    check_continues(saved, run, "out/step_00000010");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Continuation, TheSameRunGoesOn) {
  EXPECT_EQ(refusal([](RunIdentity& /*run*/) {}), "accepted");
}

TEST(Continuation, NamesTheFieldAndBothValues) {
  EXPECT_THAT(refusal([](RunIdentity& run) { run.model.n_layer = 9; }),
              AllOf(HasSubstr("out/step_00000010"), HasSubstr("--n-layer 6"), HasSubstr("has 9")));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.model.n_head = 3; }), HasSubstr("--n-head"));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.model.n_embd = 96; }), HasSubstr("--n-embd"));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.model.block_size = 8; }),
              HasSubstr("--block-size"));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.model.gelu = Gelu::kErf; }),
              AllOf(HasSubstr("--gelu tanh"), HasSubstr("has erf")));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.model.vocab_size = 256; }),
              HasSubstr("vocabulary of 65"));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.seed = 2; }), HasSubstr("--seed 1"));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.global_batch_size = 24; }),
              HasSubstr("--global-batch-size 12"));
  EXPECT_THAT(refusal([](RunIdentity& run) { run.dataset_fingerprint = "bbbb"; }),
              AllOf(HasSubstr("aaaa"), HasSubstr("bbbb")));
}

}  // namespace
}  // namespace lockstep
