#include "comm/transport_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr auto kShm = TransportKind::kShm;
constexpr auto kSocket = TransportKind::kSocket;

PeerTable ranks_on(const std::vector<std::string>& hosts) {
  PeerTable peers;
  for (const std::string& host : hosts) {
    PeerInfo info;
    info.rank = static_cast<int>(peers.size());
    info.host = host;
    info.host_id = host;
    peers.push_back(info);
  }
  return peers;
}

TEST(TransportSelect, TakesSharedMemoryExactlyWithinAHost) {
  const std::vector<bool> maps = {true, true, true, true};
  const auto edges =
      select_transports(ranks_on({"a", "a", "b", "b"}), TransportChoice::kAuto, maps);
  EXPECT_EQ(edges, (std::vector{kShm, kSocket, kShm, kSocket}));
  EXPECT_EQ(transport_names(edges), "shm+socket");
}

TEST(TransportSelect, FallsBackWhereMemoryCouldNotBeMapped) {
  const auto edges =
      select_transports(ranks_on({"a", "a", "a"}), TransportChoice::kAuto, {true, true, false});
  EXPECT_EQ(edges, (std::vector{kShm, kSocket, kShm}));
}

TEST(TransportSelect, FollowsAForcedChoice) {
  const PeerTable one_host = ranks_on({"a", "a"});
  const auto socket = select_transports(one_host, TransportChoice::kSocket, {true, true});
  EXPECT_EQ(socket, (std::vector{kSocket, kSocket}));
  EXPECT_EQ(transport_names(socket), "socket");
  const auto shm = select_transports(one_host, TransportChoice::kShm, {true, true});
  EXPECT_EQ(shm, (std::vector{kShm, kShm}));
  EXPECT_EQ(transport_names(shm), "shm");
}

TEST(TransportSelect, RefusesToForceSharedMemoryBetweenHosts) {
  try {
    select_transports(ranks_on({"a", "b"}), TransportChoice::kShm, {true, true});
    FAIL() << "two hosts share no memory";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("ranks 0 on a and 1 on b"));
  }
  EXPECT_THROW(select_transports(ranks_on({"a", "a"}), TransportChoice::kShm, {true, false}),
               UsageError);
}

TEST(TransportSelect, WordsNameTheChoices) {
  for (const std::string& word : kTransportWords) {
    EXPECT_EQ(transport_word(transport_choice(word)), word);
  }
  EXPECT_EQ(transport_choice("auto"), TransportChoice::kAuto);
  EXPECT_EQ(transport_choice("staged"), TransportChoice::kStaged);
  EXPECT_EQ(transport_choice("socket"), TransportChoice::kSocket);
  EXPECT_EQ(transport_choice("nccl"), TransportChoice::kNccl);
}

TEST(TransportSelect, KnowsWhatIsForGpus) {
  for (const std::string word : {"peer", "staged", "nccl"}) {
    EXPECT_TRUE(serves_gpus_only(transport_choice(word))) << word;
  }
  for (const std::string word : {"auto", "shm", "socket"}) {
    EXPECT_FALSE(serves_gpus_only(transport_choice(word))) << word;
  }
}

TEST(TransportSelect, OnlyNcclHasBitsOfItsOwnFromThreeRanksOn) {
  for (const std::string& word : kTransportWords) {
    EXPECT_TRUE(has_ring_bits(transport_choice(word), 2)) << word;
    EXPECT_EQ(has_ring_bits(transport_choice(word), 3), word != "nccl") << word;
  }
}

}  // namespace
}  // namespace lockstep
