#include "comm/control_plane.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "comm/run_under.h"
#include "core/base/clock.h"
#include "support/thread_bootstrap.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

class ControlPlaneTest : public testing::TestWithParam<int> {};

/// Runs `body` on every rank, under a control plane with short limits, and returns what each rank
/// left with; nothing for a rank that finished.
std::vector<std::string> run_group(int world_size, const ControlOptions& options,
                                   const std::function<void(int, ControlPlane&)>& body) {
  std::vector<std::string> left(static_cast<size_t>(world_size));
  run_ranks(world_size, [&](Bootstrap& bootstrap) {
    const PeerTable peers = gather_peer_table(bootstrap);
    ControlPlane control(bootstrap, peers, options);
    try {
      run_under(control, [&] { body(bootstrap.rank(), control); });
    } catch (const Error& error) {
      left[static_cast<size_t>(bootstrap.rank())] =
          fmt::format("{} {}", static_cast<int>(error.code()), error.what());
    }
  });
  return left;
}

TEST_P(ControlPlaneTest, FinishesInOrder) {
  const auto left = run_group(GetParam(), {}, [](int, ControlPlane& control) {
    control.set_step(1);
    control.throw_if_aborted();
  });
  EXPECT_EQ(left, std::vector<std::string>(left.size()));
}

TEST_P(ControlPlaneTest, TheFirstReportReachesEveryRank) {
  const int failing = GetParam() - 1;
  const auto left = run_group(GetParam(), {}, [&](int rank, ControlPlane& control) {
    control.set_step(7);
    control.set_phase(Phase::kSave);
    if (rank == failing) {
      throw IoError("no space left");
    }
    while (!control.aborted()) {
      std::this_thread::yield();
    }
    throw PeerLostError("a consequence");
  });
  for (const std::string& cause : left) {
    EXPECT_EQ(cause, left[0]);
    EXPECT_EQ(cause.rfind("3 rank ", 0), 0U) << cause;
    EXPECT_NE(cause.find("failed in step 7, save: no space left"), std::string::npos) << cause;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, ControlPlaneTest, testing::Values(2, 3, 6));

TEST(ControlPlane, OneRankIsLeftAlone) {
  const auto left = run_group(1, {}, [](int, ControlPlane& control) {
    control.await_cause();
    control.report(IoError("its own business"));
    EXPECT_FALSE(control.aborted());
    throw IoError("its own business");
  });
  EXPECT_EQ(left[0], "3 its own business");
}

TEST(ControlPlane, NamesTheRankThatLeavesEarly) {
  std::vector<std::string> left(3);
  run_ranks(3, [&](Bootstrap& bootstrap) {
    const PeerTable peers = gather_peer_table(bootstrap);
    ControlPlane control(bootstrap, peers, {});
    if (bootstrap.rank() == 1) {
      control.set_step(4);
      return;
    }
    try {
      control.finish();
    } catch (const AbortedError& error) {
      left[static_cast<size_t>(bootstrap.rank())] = error.what();
    }
  });
  EXPECT_EQ(left[0], left[2]);
  EXPECT_EQ(left[0].rfind("rank 1 (host ", 0), 0U) << left[0];
  EXPECT_NE(left[0].find("left the run before its end, in step 4, start"), std::string::npos)
      << left[0];
}

TEST(ControlPlane, NamesTheRankThatLivesButDoesNotFinish) {
  const ControlOptions options{.heartbeat_interval = milliseconds(20),
                               .finish_timeout = milliseconds(200)};
  const auto left = run_group(3, options, [](int rank, ControlPlane& control) {
    if (rank == 2) {
      control.set_phase(Phase::kEvaluate);
      while (!control.aborted()) {
        std::this_thread::yield();
      }
      control.throw_if_aborted();
    }
  });
  for (const std::string& cause : left) {
    EXPECT_EQ(cause.rfind("6 rank 2 (host ", 0), 0U) << cause;
    EXPECT_NE(cause.find("did not come to the end of the run within 0.2 s"), std::string::npos);
    EXPECT_NE(cause.find("it is in evaluate"), std::string::npos);
  }
}

TEST(ControlPlane, Rank0MayWorkOnAtTheEndForAsLongAsItLikes) {
  const ControlOptions options{.heartbeat_interval = milliseconds(20),
                               .finish_timeout = milliseconds(200)};
  const auto left = run_group(3, options, [](int rank, ControlPlane& control) {
    if (rank == 0) {
      control.set_phase(Phase::kSave);
      std::this_thread::sleep_for(milliseconds(600));
      control.throw_if_aborted();
    }
  });
  EXPECT_EQ(left, std::vector<std::string>(3));
}

TEST(ControlPlane, WaitsHalfASecondForTheCauseOfABrokenConnection) {
  const auto left = run_group(2, {}, [](int rank, ControlPlane& control) {
    if (rank == 1) {
      const auto start = Clock::now();
      control.await_cause();  // nobody failed
      EXPECT_GE(seconds_since(start), 0.5);
    }
  });
  EXPECT_EQ(left, std::vector<std::string>(2));
}

}  // namespace
}  // namespace lockstep
