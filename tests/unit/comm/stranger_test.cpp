// Who may connect while ranks look for each other: strangers come first, in every form, and neither
// get in nor keep the ranks apart.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <latch>
#include <memory>
#include <vector>

#include "comm/connection.h"
#include "comm/handshake.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "support/thread_bootstrap.h"
#include "wire.pb.h"

namespace lockstep {
namespace {

/// What a stranger may know: where rank 0 listens, and, to play a member gone mad, the key.
struct Known {
  uint16_t port = 0;
  std::string key;
};

/// Calls `attack` when this rank has learnt where rank 0 listens, before it connects itself.
class BesetBootstrap final : public Bootstrap {
 public:
  BesetBootstrap(Bootstrap& real, std::function<void(const Known&)> attack)
      : real_(real), attack_(std::move(attack)) {}

  int rank() const override { return real_.rank(); }
  int world_size() const override { return real_.world_size(); }
  void barrier() override { real_.barrier(); }
  std::vector<std::string> all_gather(std::string_view bytes) override {
    std::vector<std::string> parts = real_.all_gather(bytes);
    wire::Rendezvous rendezvous;
    EXPECT_TRUE(rendezvous.ParseFromString(parts[0]));
    EXPECT_EQ(rendezvous.addresses(0), "127.0.0.1");
    attack_({static_cast<uint16_t>(rendezvous.ports(0)), rendezvous.key()});
    return parts;
  }

 private:
  Bootstrap& real_;
  std::function<void(const Known&)> attack_;
};

/// A client without manners; every read gives up after ten seconds.
class Stranger {
 public:
  explicit Stranger(uint16_t port, bool expect_listener = true)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    const bool connected =
        ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    EXPECT_TRUE(connected || !expect_listener);
  }

  template <class Bytes>
  void send(const Bytes& bytes) {
    // The other end may have closed already.
    (void)::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  HandshakeChallenge challenge() {
    HandshakeChallenge challenge{};
    EXPECT_EQ(::recv(fd_.get(), challenge.data(), challenge.size(), MSG_WAITALL),
              static_cast<ssize_t>(challenge.size()));
    return challenge;
  }

  /// Whether the other end closes without a word.
  bool dropped() {
    char byte = 0;
    const ssize_t got = ::recv(fd_.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

  bool open_now() {
    char byte = 0;
    return ::recv(fd_.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

 private:
  UniqueFd fd_;
};

HandshakeTerms claim(int rank) {
  return {.purpose = Purpose::kControl, .client = rank, .server = 0, .world_size = 3};
}

/// Three ranks meet at rank 0; `attack` comes after rank 1 has connected and before rank 2 does.
/// Returns how long that took without the attack itself.
double meet_under(const std::function<void(const Known&)>& attack) {
  double attack_seconds = 0;
  double meeting_seconds = 0;
  std::latch rank_1_is_in(1);
  run_ranks(3, [&](Bootstrap& bootstrap) {
    const PeerTable peers = gather_peer_table(bootstrap);
    const auto start = Clock::now();
    if (bootstrap.rank() == 0) {
      const Connections made = connect_ranks(bootstrap, peers, {.accept_from = {1, 2}});
      meeting_seconds = seconds_since(start);
      EXPECT_EQ(made.accepted.size(), 2U);
    } else if (bootstrap.rank() == 1) {
      EXPECT_EQ(connect_ranks(bootstrap, peers, {.connect_to = {0}}).connected.size(), 1U);
      rank_1_is_in.count_down();
    } else {
      BesetBootstrap beset(bootstrap, [&](const Known& known) {
        rank_1_is_in.wait();
        const auto began = Clock::now();
        attack(known);
        attack_seconds = seconds_since(began);
      });
      EXPECT_EQ(connect_ranks(beset, peers, {.connect_to = {0}}).connected.size(), 1U);
    }
    bootstrap.barrier();
  });
  return meeting_seconds - attack_seconds;
}

struct Attack {
  const char* name;
  std::function<void(const Known&)> run;
};

void send_and_expect_drop(uint16_t port, const std::string& bytes) {
  Stranger stranger(port);
  stranger.send(bytes);
  EXPECT_TRUE(stranger.dropped());
}

/// A whole handshake with the given key; the answer is made by `answer`.
void expect_refusal(
    const Known& known, const HandshakeTerms& terms,
    const std::function<HandshakeProof(HandshakeClient&, HandshakeChallenge)>& answer) {
  const GroupKey key = GroupKey::from_bytes(known.key);
  HandshakeClient client(key, terms);
  Stranger stranger(known.port);
  stranger.send(client.hello());
  stranger.send(answer(client, stranger.challenge()));
  EXPECT_TRUE(stranger.dropped());
}

void attack_with_garbage(const Known& known) {
  send_and_expect_drop(known.port, std::string(sizeof(HandshakeHello), '\x5a'));
  send_and_expect_drop(known.port, "GET / HTTP/1.1\r\n\r\n" + std::string(1U << 20U, 'x'));
}

void attack_with_a_huge_length(const Known& known) {
  send_and_expect_drop(known.port, std::string(sizeof(HandshakeHello), '\xff'));
}

void attack_with_another_key(const Known& known) {
  const GroupKey other = GroupKey::random();
  const HandshakeClient client(other, claim(2));
  Stranger stranger(known.port);
  stranger.send(client.hello());
  EXPECT_TRUE(stranger.dropped());
}

void attack_with_an_overheard_hello(const Known& known) {
  expect_refusal(known, claim(2),
                 [](HandshakeClient&, HandshakeChallenge) { return HandshakeProof{}; });
}

void attack_with_a_replay(const Known& known) {
  const GroupKey key = GroupKey::from_bytes(known.key);
  HandshakeClient member(key, claim(2));
  HandshakeProof overheard{};
  {
    Stranger first(known.port);
    first.send(member.hello());
    overheard = member.answer(first.challenge());
  }
  Stranger second(known.port);
  second.send(member.hello());
  second.challenge();
  second.send(overheard);
  EXPECT_TRUE(second.dropped());
}

void attack_with_a_reflection(const Known& known) {
  expect_refusal(known, claim(2),
                 [](HandshakeClient&, HandshakeChallenge challenge) { return challenge; });
}

void attack_with_a_rank_that_nobody_awaits(const Known& known) {
  expect_refusal(known, claim(0), [](HandshakeClient& client, HandshakeChallenge challenge) {
    return client.answer(challenge);
  });
}

void attack_with_a_second_rank_1(const Known& known) {
  expect_refusal(known, claim(1), [](HandshakeClient& client, HandshakeChallenge challenge) {
    return client.answer(challenge);
  });
}

void attack_with_cut_connections(const Known& known) {
  const GroupKey key = GroupKey::from_bytes(known.key);
  HandshakeClient client(key, claim(2));
  for (int i = 0; i < 100; ++i) {
    Stranger stranger(known.port);
    stranger.send(std::string(static_cast<size_t>(i % 80), 'x'));
  }
  Stranger stranger(known.port);
  stranger.send(client.hello());
  stranger.challenge();
}

class Strangers : public testing::TestWithParam<Attack> {};

TEST_P(Strangers, AreDroppedAndDoNotDelayTheStart) {
  EXPECT_LT(meet_under(GetParam().run), 2.0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Strangers,
                         testing::Values(Attack{"garbage", attack_with_garbage},
                                         Attack{"huge_length", attack_with_a_huge_length},
                                         Attack{"another_key", attack_with_another_key},
                                         Attack{"overheard_hello", attack_with_an_overheard_hello},
                                         Attack{"replay", attack_with_a_replay},
                                         Attack{"reflection", attack_with_a_reflection},
                                         Attack{"unawaited_rank",
                                                attack_with_a_rank_that_nobody_awaits},
                                         Attack{"second_rank_1", attack_with_a_second_rank_1},
                                         Attack{"cut_connections", attack_with_cut_connections}),
                         [](const auto& attack) { return std::string(attack.param.name); });

TEST(SilentStrangers, AreBoundedInNumberAndDoNotDelayTheStart) {
  constexpr size_t most = 64;
  std::vector<std::unique_ptr<Stranger>> strangers;
  const double seconds = meet_under([&](const Known& known) {
    const auto start = Clock::now();
    for (int i = 0; i < 300; ++i) {
      strangers.push_back(std::make_unique<Stranger>(known.port));
    }
    for (size_t i = 0; i + most < strangers.size(); ++i) {
      EXPECT_TRUE(strangers[i]->dropped()) << "stranger " << i;
    }
    EXPECT_LT(seconds_since(start), 4.5) << "the limit of 5 s dropped them, not their number";
    EXPECT_TRUE(strangers.back()->open_now()) << "the newest are kept";
  });
  EXPECT_LT(seconds, 2.0);
}

/// Rank 1, played by hand: it answers rank 0's challenge at the moment when one stranger too many
/// comes and rank 1's connection is the oldest that is not proven.
void come_with_a_crowd(Bootstrap& bootstrap) {
  wire::Rendezvous rendezvous;
  ASSERT_TRUE(
      rendezvous.ParseFromString(bootstrap.all_gather(wire::Rendezvous().SerializeAsString())[0]));
  const auto port = static_cast<uint16_t>(rendezvous.ports(0));
  const GroupKey key = GroupKey::from_bytes(rendezvous.key());
  constexpr HandshakeTerms terms{
      .purpose = Purpose::kControl, .client = 1, .server = 0, .world_size = 2};
  std::vector<std::unique_ptr<Stranger>> crowd;
  while (true) {
    HandshakeClient client(key, terms);
    Stranger member(port);
    member.send(client.hello());
    const HandshakeProof proof = client.answer(member.challenge());
    crowd.clear();
    for (int i = 0; i < 63; ++i) {
      crowd.push_back(std::make_unique<Stranger>(port));
    }
    member.send(proof);
    crowd.push_back(std::make_unique<Stranger>(port, false));  // rank 0 may be content already
    if (!member.dropped()) {                                   // it has the welcome
      return;
    }
  }
}

TEST(SilentStrangers, CannotPushOutAMemberThatIsWelcome) {
  for (int meeting = 0; meeting < 100; ++meeting) {
    run_ranks(2, [](Bootstrap& bootstrap) {
      const PeerTable peers = gather_peer_table(bootstrap);
      if (bootstrap.rank() == 0) {
        const Connections made = connect_ranks(bootstrap, peers, {.accept_from = {1}});
        EXPECT_EQ(made.accepted.size(), 1U);
      } else {
        come_with_a_crowd(bootstrap);
      }
      bootstrap.barrier();
    });
  }
}

TEST(SilentStrangers, AreDroppedAfterFiveSeconds) {
  meet_under([](const Known& known) {
    const auto start = Clock::now();
    Stranger silent(known.port);
    Stranger slow(known.port);
    slow.send(std::string("LOCKSTEP"));
    EXPECT_TRUE(silent.dropped());
    EXPECT_TRUE(slow.dropped());
    EXPECT_GE(seconds_since(start), 4.5);
    EXPECT_LT(seconds_since(start), 7.0);
  });
}

}  // namespace
}  // namespace lockstep
