// Steps of several real ranks: their parameters stay the same, and a difference is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "comm/control_plane.h"
#include "comm/peer_table.h"
#include "comm/run_under.h"
#include "core/base/random.h"
#include "core/device/branch.h"
#include "support/mpi_environment.h"
#include "support/ring_inputs.h"
#include "trainer/replica.h"
#include "trainer/replica_shard.h"
#include "trainer/training_step.h"

namespace lockstep {
namespace {

GptConfig tiny() {
  GptConfig config;
  config.n_layer = 1;
  config.n_head = 2;
  config.n_embd = 16;
  config.block_size = 8;
  config.vocab_size = 11;
  return config;
}

/// Runs `steps` steps; `before` may change the replica before each. What the group ends with.
ExitCode run_steps(int64_t check_interval, int64_t steps,
                   const std::function<void(int64_t, Replica<CpuDevice>&)>& before,
                   std::string* message) {
  Bootstrap& bootstrap = test_bootstrap();
  const PeerTable peers = gather_peer_table(bootstrap);
  ControlPlane control(bootstrap, peers, {});
  try {
    run_under(control, [&] {
      const GptConfig model = tiny();
      const BatchPlan batch = plan_batch(1, 0, 1, bootstrap.world_size());
      const WindowLayout window(ParamTable(model).arena_size(), batch, 0);
      CommunicatorOptions options;
      options.window_elements = window.elements();
      Communicator<CpuDevice> communicator(bootstrap, peers, control, options);
      CpuStream stream;
      Replica<CpuDevice> replica(stream, model, {}, 1, 1,
                                 communicator.window().subview(window.gradients));
      TrainingStep<CpuDevice> training(
          replica, communicator, control, window,
          {.batch = batch, .rank = bootstrap.rank(), .check_interval = check_interval});
      HostBatch tokens;
      tokens.tokens.assign(8, 1 + bootstrap.rank());
      tokens.targets.assign(8, 2);
      for (int64_t step = 0; step < steps; ++step) {
        before(step, replica);
        training.enqueue(step, 1e-3, {}, [&]() -> const HostBatch& { return tokens; });
        training.collect();
      }
    });
  } catch (const Error& error) {
    *message = error.what();
    return error.code();
  }
  return ExitCode::kDone;
}

// Parts of one segment a rank, the last one ragged, of gradients that all ranks have.
TEST(UpdateReplica, GathersEveryPartOfAShardedArena) {
  Bootstrap& bootstrap = test_bootstrap();
  const int ranks = bootstrap.world_size();
  const PeerTable peers = gather_peer_table(bootstrap);
  ControlPlane control(bootstrap, peers, {});
  run_under(control, [&] {
    GptConfig model = tiny();
    model.n_embd = 112;
    const int64_t size = ParamTable(model).arena_size();
    ASSERT_GT(size, 2 * ranks * kSegmentElements);
    const WindowLayout layout(size, plan_batch(1, 0, 1, ranks), 0, true);
    CommunicatorOptions options;
    options.window_elements = layout.elements();
    Communicator<CpuDevice> communicator(bootstrap, peers, control, options);
    CpuStream stream;
    const CpuView<float> gradients = communicator.window().subview(layout.gradients);
    const Group group{bootstrap, peers, control};
    Replica<CpuDevice> sharded(stream, model, {}, 1, 1, gradients,
                               replica_shard(group, communicator, layout));
    Replica<CpuDevice> whole(stream, model, {}, 1, 1, gradients);
    const WindowLayout without(size, plan_batch(1, 0, 1, ranks), 0);
    for (int64_t i = 0; i < size; ++i) {
      gradients[i] = static_cast<float>(random_normal(1, 0, static_cast<uint64_t>(i)));
    }
    for (int64_t step = 0; step < 3; ++step) {
      for (auto [replica, parts] : {std::pair(&sharded, &layout), std::pair(&whole, &without)}) {
        AdamWStep scalars = replica->optimizer().scalars(step, 1e-2);
        update_replica<CpuDevice>(stream, *replica, communicator, *parts, {&scalars, 1},
                                  ranks * kSegmentElements, true);
      }
    }
    EXPECT_TRUE(std::equal(whole.parameters().begin(), whole.parameters().end(),
                           sharded.parameters().begin()));
  });
}

TEST(TrainingStep, KeepsTheParametersOfAllRanksTheSame) {
  std::string message;
  EXPECT_EQ(run_steps(
                1, 6, [](int64_t, Replica<CpuDevice>&) {}, &message),
            ExitCode::kDone);
}

/// The last rank's lowest bit of one parameter changes before step 3.
void lose_a_bit(int64_t step, Replica<CpuDevice>& replica) {
  if (step == 3 && test_bootstrap().rank() == test_bootstrap().world_size() - 1) {
    float& value = replica.parameters()[5];
    value = std::nextafter(value, 2.0F);
  }
}

TEST(TrainingStep, FindsABitThatOneRankLost) {
  for (const auto& [interval, found] : {std::pair{1, 4}, std::pair{4, 5}}) {
    std::string message;
    EXPECT_EQ(run_steps(interval, 8, lose_a_bit, &message), ExitCode::kRanksDisagree);
    EXPECT_THAT(message,
                testing::HasSubstr("step " + std::to_string(found) + ": the parameters of rank " +
                                   std::to_string(test_bootstrap().world_size() - 1)));
  }
}

TEST(TrainingStep, LooksOnlyWhenAsked) {
  std::string message;
  EXPECT_EQ(run_steps(0, 8, lose_a_bit, &message), ExitCode::kDone);
}

/// Sums a bucket of reals under a check, over `transport`; the last rank's sum may lose a bit.
ExitCode sum_under_check(TransportChoice transport, bool lose_a_bit, std::string* message) {
  Bootstrap& bootstrap = test_bootstrap();
  const PeerTable peers = gather_peer_table(bootstrap);
  ControlPlane control(bootstrap, peers, {});
  try {
    run_under(control, [&] {
      CommunicatorOptions options;
      options.window_elements = 50000;
      options.transport = transport;
      Communicator<CpuDevice> communicator(bootstrap, peers, control, options);
      ReduceCheck<CpuDevice> check(bootstrap, peers, control, options,
                                   communicator.transport_name());
      const CpuView<float> window = communicator.window();
      CpuStream stream;
      for (int round = 0; round < 2; ++round) {
        for (int64_t i = 0; i < window.size(); ++i) {
          window[i] = real_at(bootstrap.rank(), i + round);
        }
        int bucket = 0;
        for (const Range range : {Range{20000, 50000}, Range{0, 20000}}) {
          check.before(stream, window, range, bucket);
          communicator.all_reduce(stream, range, bucket++);
        }
        communicator.finish(stream);
        if (lose_a_bit && round == 1 && bootstrap.rank() + 1 == bootstrap.world_size()) {
          window[777] = std::nextafter(window[777], 0.0F);
        }
        check.compare(stream, window);
      }
    });
  } catch (const Error& error) {
    *message = error.what();
    return error.code();
  }
  return ExitCode::kDone;
}

TEST(ReduceCheck, FindsABitOfASumThatDiffers) {
  for (const TransportChoice transport : {TransportChoice::kShm, TransportChoice::kSocket}) {
    std::string message;
    EXPECT_EQ(sum_under_check(transport, false, &message), ExitCode::kDone) << message;
    EXPECT_EQ(sum_under_check(transport, true, &message), ExitCode::kInternal);
    EXPECT_THAT(message, testing::HasSubstr("bucket 1: element 777 of the gradients"));
  }
}

}  // namespace
}  // namespace lockstep
