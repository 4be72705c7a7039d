#include "trainer/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/arena_shard.h"
#include "core/base/error.h"
#include "core/base/host_memory.h"
#include "support/error_of.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::Not;

RunShape small() {
  return {.model = {.vocab_size = 65, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128},
          .batch = {.batch_size = 12, .accumulation_steps = 1, .world_size = 1},
          .eval_iters = 20};
}

TEST(MemoryPlan, CountsWhatARankHolds) {
  const MemoryPlan plan = plan_memory(small());
  // wte 80 x 128 with padding, wpe 64 x 128, 4 layers of 12 C^2 + 13 C, ln_f 2 C.
  const int64_t arena = 4 * (80 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128);
  EXPECT_EQ(plan.parameters, arena);
  EXPECT_EQ(plan.moments, 2 * arena);
  EXPECT_EQ(plan.gradients,
            arena + 4 * (1 + 3 + 4 + 20));  // one loss, three facts, a fingerprint, the evaluation
  EXPECT_EQ(plan.batches, 4 * 2 * 64 * (12 + 12));
  EXPECT_EQ(plan.total(), plan.parameters + plan.gradients + plan.moments + plan.layers +
                              plan.head + plan.scratch + plan.batches);
}

TEST(MemoryPlan, ARankOfAShardedOptimizerHoldsItsMomentsAlone) {
  RunShape shape = small();
  shape.batch.world_size = 4;
  const MemoryPlan whole = plan_memory(shape);
  shape.sharded = true;
  const MemoryPlan plan = plan_memory(shape);
  EXPECT_EQ(plan.parameters, whole.parameters);
  // Segments are whole, and the first rank may have one more than others.
  EXPECT_GE(plan.moments, whole.moments / 4);
  EXPECT_LT(plan.moments, whole.moments / 4 + 8 * kSegmentElements);
  EXPECT_LT(plan.gradients, whole.gradients + 4 * (4 + 4) * kSegmentElements);
  EXPECT_LT(plan.total(), whole.total());
  MemorySupply supply = {"here"};
  EXPECT_EQ(needed_memory(shape, supply), plan.total());
  EXPECT_THAT(memory_report(shape, supply), Not(HasSubstr("for checkpoints")));
  supply.holds_checkpoints = true;
  EXPECT_EQ(needed_memory(shape, supply), plan.total() + plan.parameters);
  EXPECT_THAT(memory_report(shape, supply), HasSubstr("for checkpoints"));
  shape.batch.world_size = 1;
  EXPECT_EQ(plan_memory(shape).moments, whole.moments);
}

TEST(MemoryPlan, TheLargestBatchFitsAndOneMoreDoesNot) {
  RunShape shape = small();
  const auto half_as_much = [](const RunShape& run) { return plan_memory(run).total() / 2; };
  for (const int64_t bytes : {int64_t{32} << 20, int64_t{1} << 30, int64_t{139} << 30}) {
    MemorySupply supply = {"here", bytes};
    for (const int64_t parts : {2, 3}) {  // the second time with half as much for kernels
      const int64_t largest = largest_batch_size(shape, supply);
      ASSERT_GT(largest, 0);
      shape.batch.batch_size = largest;
      EXPECT_LE(plan_memory(shape).total() / 2 * parts, bytes);
      shape.batch.batch_size = largest + 1;
      EXPECT_GT(plan_memory(shape).total() / 2 * parts, bytes);
      supply.kernels = half_as_much;
    }
  }
  EXPECT_EQ(largest_batch_size(shape, {"here", 1 << 20}), 0);
}

TEST(MemoryPlan, RefusesWithTheNumbersAndWhatFits) {
  const RunShape shape = small();
  const int64_t needed = plan_memory(shape).total();
  EXPECT_EQ(check_memory(shape, {"here", needed, 1}), needed);
  EXPECT_EQ(check_memory(shape, {"here", -1, 1}), needed);
  const std::string one = error_of<OutOfMemoryError>([&] {
    check_memory(shape, {"on this host", needed - 1, 1});
  });
  EXPECT_THAT(one,
              HasSubstr(fmt::format("needs {:.1f} MiB", static_cast<double>(needed) / (1 << 20))));
  EXPECT_THAT(one, HasSubstr("free on this host: --batch-size 11 or less fits, 6 of those that "
                             "divide a rank's 12 sequences"));
  const std::string two = error_of<OutOfMemoryError>([&] {
    check_memory(shape, {"on this host", needed, 2});
  });
  EXPECT_THAT(two, HasSubstr("each of the 2 ranks"));
  EXPECT_THAT(error_of<OutOfMemoryError>([&] {
                check_memory(shape, {"there", 1 << 20, 2});
              }),
              HasSubstr("fewer ranks"));
}

TEST(MemoryPlan, NamesTheOptionThatTakesMost) {
  const auto advice = [](const RunShape& shape) {
    return error_of<OutOfMemoryError>([&] { check_memory(shape, {"here", 1 << 20, 1}); });
  };
  const std::string no_batch = "free here: not even --batch-size 1 fits; a smaller ";
  RunShape wide = small();
  wide.model.n_embd = 4096;
  EXPECT_THAT(advice(wide), HasSubstr(no_batch + "--n-embd frees most"));
  RunShape deep = small();
  deep.model.n_layer = 1000;
  deep.model.n_embd = 4;
  deep.model.block_size = 8;
  EXPECT_THAT(advice(deep), HasSubstr(no_batch + "--n-layer frees most"));
  RunShape sharp = small();
  sharp.model.vocab_size = 100000;
  sharp.model.n_layer = 1;
  sharp.model.n_embd = 4;
  sharp.model.block_size = 100000;
  EXPECT_THAT(advice(sharp), HasSubstr(no_batch + "--block-size frees most"));
  RunShape patient = small();
  patient.batch.accumulation_steps = 900'000'000;
  EXPECT_THAT(advice(patient), HasSubstr(no_batch + "--gradient-accumulation-steps frees most"));
}

TEST(MemoryPlan, ReportsEveryClass) {
  const std::string report = memory_report(small(), {"on this host", int64_t{1} << 30, 2});
  for (const char* part : {"trains on", "parameters", "moments", "layers", "head", "scratch",
                           "in all", "1024.0 MiB on this host, for 2 ranks", "--batch-size"}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
}

TEST(MemoryPlan, CountsWhatSumsTake) {
  const RunShape shape = small();
  MemorySupply supply = {.device = "here", .free = int64_t{1} << 30};
  const int64_t needed = needed_memory(shape, supply);
  EXPECT_THAT(memory_report(shape, supply), Not(HasSubstr("sums over ranks")));
  supply.sums = [](int64_t gradients) { return 1000 + gradients; };
  EXPECT_EQ(needed_memory(shape, supply), needed + 1000 + plan_memory(shape).gradients);
  EXPECT_THAT(memory_report(shape, supply), HasSubstr("sums over ranks"));
}

TEST(HostMemory, IsKnownAndPlausible) {
  const int64_t bytes = available_host_bytes();
  EXPECT_GT(bytes, int64_t{1} << 20);
  EXPECT_LT(bytes, int64_t{1} << 50);
}

}  // namespace
}  // namespace lockstep
