#include "comm/connection.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include "core/base/error.h"
#include "support/thread_bootstrap.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

void send_number(const UniqueFd& fd, int value) {
  ASSERT_EQ(::write(fd.get(), &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
}

int receive_number(const UniqueFd& fd) {
  int value = -1;
  while (::read(fd.get(), &value, sizeof(value)) < 0 && errno == EAGAIN) {
  }
  return value;
}

class Ring : public testing::TestWithParam<int> {};

TEST_P(Ring, EachSocketLeadsToItsRank) {
  const int world = GetParam();
  run_ranks(world, [&](Bootstrap& bootstrap) {
    const int rank = bootstrap.rank();
    const int next = (rank + 1) % world;
    const int previous = (rank + world - 1) % world;
    const PeerTable peers = gather_peer_table(bootstrap);
    const Connections ring =
        connect_ranks(bootstrap, peers,
                      {.purpose = Purpose::kRing, .accept_from = {previous}, .connect_to = {next}});
    send_number(ring.connected.at(next), rank);
    EXPECT_EQ(receive_number(ring.accepted.at(previous)), previous);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Ring, testing::Values(2, 3, 8));

TEST(ConnectRanks, NamesTheRankThatDoesNotCome) {
  std::mutex mutex;
  std::vector<std::string> messages;
  run_ranks(3, [&](Bootstrap& bootstrap) {
    const PeerTable peers = gather_peer_table(bootstrap);
    ConnectOptions options{.timeout = milliseconds(300)};
    if (bootstrap.rank() == 0) {
      options.accept_from = {1, 2};
    } else if (bootstrap.rank() == 1) {
      options.connect_to = {0};
    }
    try {
      connect_ranks(bootstrap, peers, options);
      EXPECT_NE(bootstrap.rank(), 0);
    } catch (const TimeoutError& error) {
      const std::lock_guard lock(mutex);
      messages.emplace_back(error.what());
    }
  });
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find("with rank 2 (host "), std::string::npos) << messages[0];
  EXPECT_EQ(messages[0].find("rank 1"), std::string::npos) << messages[0];
}

TEST(ConnectRanks, RefusesAnAddressThatIsNotOfThisHost) {
  for (const char* address : {"0.0.0.0", "203.0.113.7", "no-such-interface"}) {
    run_ranks(1, [&](Bootstrap& bootstrap) {
      const PeerTable peers = gather_peer_table(bootstrap);
      EXPECT_THROW(connect_ranks(bootstrap, peers, {.accept_from = {0}, .bind_address = address}),
                   UsageError)
          << address;
    });
  }
}

}  // namespace
}  // namespace lockstep
