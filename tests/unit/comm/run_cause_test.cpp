#include "comm/run_cause.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "comm/finish_roll.h"
#include "comm/running_time.h"
#include "comm/status_page.h"
#include "support/ranks_on.h"

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

std::vector<int> printers(const RunCause& cause, const PeerTable& peers) {
  std::vector<int> ranks;
  for (const PeerInfo& peer : peers) {
    if (may_print(cause, peers, peer.rank)) {
      ranks.push_back(peer.rank);
    }
  }
  return ranks;
}

TEST(RunCause, Rank0PrintsUnlessItIsLost) {
  const PeerTable peers = ranks_on({"a", "a", "b", "b"});
  EXPECT_EQ(printers(rank_died(peers[1], kStatus), peers), std::vector<int>{0});
  EXPECT_EQ(printers(rank_failed(peers[0], kStatus, IoError("full")), peers), std::vector<int>{0});
}

TEST(RunCause, ForALostRank0OneHostPrintsAndBestAnother) {
  const std::vector<std::vector<std::string>> hosts = {{"a", "a"},
                                                       {"a", "a", "a"},
                                                       {"a", "b"},
                                                       {"a", "a", "b", "b", "c"},
                                                       {"a", "b", "c", "a", "b"}};
  const std::vector<std::vector<int>> expected = {{1}, {1, 2}, {1}, {2, 3}, {1, 4}};
  for (size_t i = 0; i < hosts.size(); ++i) {
    const PeerTable peers = ranks_on(hosts[i]);
    EXPECT_EQ(printers(rank_stopped(peers[0], kStatus, {}), peers), expected[i]) << i;
  }
}

TEST(StatusPage, GivesTheMessageToOneOnly) {
  const StatusPage first;
  PeerInfo me;
  me.pid = ::getpid();
  const auto seen = StatusPage::of(me, first.fd());
  ASSERT_NE(seen, nullptr);
  EXPECT_TRUE(seen->claim_message());
  EXPECT_FALSE(seen->claim_message());
  EXPECT_FALSE(first.claim_message());
}

TEST(FinishRoll, LimitsHowLongRanksComeAfterRank0) {
  FinishRoll roll(3, milliseconds(1000));
  roll.finish(1);
  EXPECT_EQ(roll.late(std::chrono::hours(1)), std::nullopt) << "rank 0 works on";
  roll.finish(0);
  EXPECT_EQ(roll.late(milliseconds(600)), std::nullopt);
  EXPECT_EQ(roll.late(milliseconds(600)), 2);
  EXPECT_FALSE(roll.complete());
  roll.finish(2);
  EXPECT_TRUE(roll.complete());
  EXPECT_EQ(roll.late(std::chrono::hours(1)), std::nullopt);
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
