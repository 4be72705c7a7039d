#include "comm/run_cause.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "comm/running_time.h"
#include "comm/status_page.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

PeerInfo rank_1() {
  PeerInfo peer;
  peer.rank = 1;
  peer.host = "b";
  peer.pid = 123;
  return peer;
}

constexpr RankStatus kStatus{412, Phase::kBackward, 3};

TEST(RunCause, SaysWhoWhereAndInWhat) {
  EXPECT_EQ(
      rank_died(rank_1(), kStatus)
          .message.rfind("rank 1 (host b, pid 123) died in step 412, backward, bucket 3; ", 0),
      0U);
  EXPECT_EQ(rank_stopped(rank_1(), {7, Phase::kSave, -1}, milliseconds(2500))
                .message.rfind("rank 1 (host b, pid 123) stopped answering in step 7, save: "
                               "nothing heard for 2.5 s; ",
                               0),
            0U);
  EXPECT_EQ(rank_left(rank_1(), {}).message.rfind("rank 1 (host b, pid 123) left the run", 0), 0U);
  EXPECT_EQ(rank_failed(rank_1(), {}, IoError("disk full")).message,
            "rank 1 (host b, pid 123) failed in start: disk full");
}

TEST(RunCause, CarriesTheExitCode) {
  EXPECT_EQ(rank_died(rank_1(), kStatus).code, ExitCode::kPeerLost);
  EXPECT_EQ(rank_left(rank_1(), kStatus).code, ExitCode::kPeerLost);
  EXPECT_EQ(rank_stopped(rank_1(), kStatus, {}).code, ExitCode::kTimeout);
  EXPECT_EQ(rank_late(rank_1(), kStatus, {}).code, ExitCode::kTimeout);
  EXPECT_EQ(rank_failed(rank_1(), kStatus, NonFiniteError("nan")).code, ExitCode::kNonFinite);
}

TEST(RunCause, TheLowestRankThatIsLeftPrints) {
  PeerInfo rank_0 = rank_1();
  rank_0.rank = 0;
  EXPECT_EQ(rank_died(rank_0, kStatus).printer(), 1);
  EXPECT_EQ(rank_died(rank_1(), kStatus).printer(), 0);
  EXPECT_EQ(rank_failed(rank_0, kStatus, IoError("disk full")).printer(), 0);
}

TEST(RunningTime, CountsSteadyTicksInFull) {
  const Clock::time_point start{};
  RunningTime time(milliseconds(500), start);
  EXPECT_EQ(time.tick(start + milliseconds(500)), milliseconds(500));
  EXPECT_EQ(time.tick(start + milliseconds(1400)), milliseconds(900));
}

TEST(RunningTime, DoesNotCountTheTimeOfAStop) {
  const Clock::time_point start{};
  RunningTime time(milliseconds(500), start);
  EXPECT_EQ(time.tick(start + std::chrono::hours(1)), milliseconds(1000));
  EXPECT_EQ(time.tick(start + std::chrono::hours(1) + milliseconds(500)), milliseconds(500));
}

TEST(StatusPage, IsReadableThroughTheDescriptor) {
  StatusPage mine;
  PeerInfo me;
  me.pid = ::getpid();
  const auto seen = StatusPage::of(me, mine.fd());
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->read().step, -1);
  EXPECT_EQ(seen->read().bucket, -1);
  mine.set_step(5);
  mine.set_phase(Phase::kOptimizer);
  mine.set_bucket(2);
  EXPECT_EQ(describe(seen->read()), "step 5, optimizer, bucket 2");
}

TEST(StatusPage, WhatIsNoPageIsNotMapped) {
  PeerInfo me;
  me.pid = ::getpid();
  EXPECT_EQ(StatusPage::of(me, 1), nullptr);
  EXPECT_EQ(StatusPage::of(me, 100000), nullptr);
  EXPECT_EQ(StatusPage::of(me, open_file("/proc/self/stat", 0).get()), nullptr);
}

}  // namespace
}  // namespace lockstep
