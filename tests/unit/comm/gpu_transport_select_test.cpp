#include "comm/gpu_transport_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.h"
#include "support/ranks_on.h"

namespace lockstep {
namespace {

constexpr auto kAuto = TransportChoice::kAuto;

PeerTable ranks_of_one_host(size_t count) {
  return ranks_on(std::vector<std::string>(count, "a"));
}

GpuPaths after_probe(const PeerTable& peers, bool usable) {
  return {.peer_problem = peer_problem(peers, [&] {
            PeerVerdict verdict(static_cast<int>(peers.size()));
            verdict.usable = usable;
            verdict.reason = "as probed";
            return verdict;
          })};
}

GpuTransportKind chosen(const PeerTable& peers, bool usable) {
  return select_gpu_transport(peers, kAuto, after_probe(peers, usable));
}

TEST(GpuTransportSelect, TakesPeerAccessWhereItIsProvenForAsManyAsItServes) {
  for (const size_t ranks : {2, 3, 8}) {
    EXPECT_EQ(chosen(ranks_of_one_host(ranks), true), GpuTransportKind::kPeer);
  }
  EXPECT_EQ(chosen(ranks_of_one_host(9), true), GpuTransportKind::kHostRing);
}

TEST(GpuTransportSelect, DoesNotProbeMoreRanksThanPeerAccessServes) {
  const std::string problem =
      peer_problem(ranks_of_one_host(9), []() -> PeerVerdict { throw InternalError("probed"); });
  EXPECT_EQ(problem, "9 ranks are more than 8");
}

TEST(GpuTransportSelect, StagesForTwoRanksOfOneHost) {
  EXPECT_EQ(chosen(ranks_of_one_host(2), false), GpuTransportKind::kStaged);
  EXPECT_EQ(chosen(ranks_of_one_host(4), false), GpuTransportKind::kHostRing);
  EXPECT_EQ(chosen(ranks_on({"a", "b"}), false), GpuTransportKind::kHostRing);
  GpuPaths unmapped = after_probe(ranks_of_one_host(2), false);
  unmapped.maps_host_memory = false;
  EXPECT_EQ(select_gpu_transport(ranks_of_one_host(2), kAuto, unmapped),
            GpuTransportKind::kHostRing);
}

TEST(GpuTransportSelect, FollowsWhatIsAskedForOrRefuses) {
  const PeerTable two = ranks_of_one_host(2);
  const GpuPaths proven = after_probe(two, true);
  EXPECT_EQ(select_gpu_transport(two, TransportChoice::kPeer, proven), GpuTransportKind::kPeer);
  EXPECT_EQ(select_gpu_transport(two, TransportChoice::kStaged, proven), GpuTransportKind::kStaged);
  for (const TransportChoice ring : {TransportChoice::kShm, TransportChoice::kSocket}) {
    EXPECT_EQ(select_gpu_transport(two, ring, proven), GpuTransportKind::kHostRing);
  }
  try {
    select_gpu_transport(two, TransportChoice::kPeer, after_probe(two, false));
    ADD_FAILURE() << "peer access is not proven";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("--transport peer: as probed;"));
  }
  EXPECT_THROW(select_gpu_transport(ranks_of_one_host(3), TransportChoice::kStaged, {}),
               UsageError);
}

TEST(GpuTransportSelect, SumsByCopiesBetweenTwoRanksOfAHostAlone) {
  EXPECT_NO_THROW(check_copies(ranks_of_one_host(2), kAuto));
  EXPECT_NO_THROW(check_copies(ranks_of_one_host(2), TransportChoice::kPeer));
  EXPECT_THROW(check_copies(ranks_of_one_host(2), TransportChoice::kStaged), UsageError);
  EXPECT_THROW(check_copies(ranks_of_one_host(1), kAuto), UsageError);
  EXPECT_THROW(check_copies(ranks_of_one_host(3), kAuto), UsageError);
  EXPECT_THROW(check_copies(ranks_on({"a", "b"}), kAuto), UsageError);
  const PeerTable two = ranks_of_one_host(2);
  EXPECT_NO_THROW(check_copies(two, kAuto, after_probe(two, true)));
  EXPECT_THROW(check_copies(two, kAuto, after_probe(two, false)), UsageError);
}

TEST(GpuTransportSelect, TellsWhatSumsOverPeerAccessTake) {
  constexpr int64_t kWindow = 1 << 20;
  CommunicatorOptions options;
  const int64_t slots = peer_sum_bytes(ranks_of_one_host(2), options, kWindow);
  EXPECT_GT(slots, 0);
  EXPECT_GT(peer_sum_bytes(ranks_of_one_host(8), options, kWindow), 0);
  EXPECT_EQ(peer_sum_bytes(ranks_of_one_host(1), options, kWindow), 0);
  EXPECT_EQ(peer_sum_bytes(ranks_of_one_host(9), options, kWindow), 0);
  EXPECT_EQ(peer_sum_bytes(ranks_on({"a", "b"}), options, kWindow), 0);
  options.copy_engines = true;
  EXPECT_EQ(peer_sum_bytes(ranks_of_one_host(2), options, kWindow), slots + kWindow);
  options.transport = TransportChoice::kStaged;
  EXPECT_EQ(peer_sum_bytes(ranks_of_one_host(2), options, kWindow), 0);
}

TEST(GpuTransportSelect, NamesThem) {
  EXPECT_EQ(gpu_transport_name(GpuTransportKind::kPeer), "peer");
  EXPECT_EQ(gpu_transport_name(GpuTransportKind::kStaged), "staged");
  EXPECT_EQ(gpu_transport_name(GpuTransportKind::kHostRing, "shm+socket"), "host:shm+socket");
}

}  // namespace
}  // namespace lockstep
