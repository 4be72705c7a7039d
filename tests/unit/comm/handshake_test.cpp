#include "comm/handshake.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr HandshakeTerms kTerms{
    .purpose = Purpose::kRing, .client = 1, .server = 2, .world_size = 4};

class HandshakeTest : public testing::Test {
 protected:
  HandshakeTest() : key_(GroupKey::random()), other_key_(GroupKey::random()) {}

  /// Whether the server lets the client in.
  static bool let_in(HandshakeServer& server, HandshakeClient& client) {
    return server.read(client.hello()) && server.accepts(client.answer(server.challenge()));
  }

  GroupKey key_;
  GroupKey other_key_;
};

TEST_F(HandshakeTest, BothSidesAccept) {
  HandshakeClient client(key_, kTerms);
  HandshakeServer server(key_, kTerms);
  EXPECT_EQ(server.read(client.hello()), 1);
  EXPECT_TRUE(server.accepts(client.answer(server.challenge())));
  EXPECT_TRUE(client.accepts(server.welcome()));
}

TEST_F(HandshakeTest, TheServerRefusesAnotherGroupAtOnce) {
  const HandshakeClient client(other_key_, kTerms);
  HandshakeServer server(key_, kTerms);
  EXPECT_FALSE(server.read(client.hello()));
}

TEST_F(HandshakeTest, TheServerRefusesAHelloOverheardFromAMember) {
  const HandshakeClient member(key_, kTerms);
  HandshakeClient stranger(other_key_, kTerms);
  HandshakeServer server(key_, kTerms);
  ASSERT_TRUE(server.read(member.hello()));
  EXPECT_FALSE(server.accepts(stranger.answer(server.challenge())));
}

TEST_F(HandshakeTest, TheClientRefusesAServerWithoutTheKey) {
  HandshakeClient client(key_, kTerms);
  HandshakeServer stranger(other_key_, kTerms);
  stranger.read(client.hello());
  client.answer(stranger.challenge());
  EXPECT_FALSE(client.accepts(stranger.welcome()));
}

TEST_F(HandshakeTest, BothSidesMustMeanTheSame) {
  HandshakeServer server(key_, kTerms);
  HandshakeTerms terms = kTerms;
  terms.purpose = Purpose::kControl;
  EXPECT_FALSE(server.read(HandshakeClient(key_, terms).hello()));
  terms = kTerms;
  terms.server = 3;
  EXPECT_FALSE(server.read(HandshakeClient(key_, terms).hello()));
  terms = kTerms;
  terms.world_size = 5;
  EXPECT_FALSE(server.read(HandshakeClient(key_, terms).hello()));
  for (const int client : {4, -1, 1 << 30}) {
    terms = kTerms;
    terms.client = client;
    EXPECT_FALSE(server.read(HandshakeClient(key_, terms).hello())) << client;
  }
}

TEST_F(HandshakeTest, AReplayFails) {
  HandshakeClient client(key_, kTerms);
  HandshakeServer first(key_, kTerms);
  ASSERT_TRUE(first.read(client.hello()));
  const HandshakeProof overheard = client.answer(first.challenge());
  ASSERT_TRUE(first.accepts(overheard));
  HandshakeServer second(key_, kTerms);
  ASSERT_TRUE(second.read(client.hello()));
  EXPECT_FALSE(second.accepts(overheard));

  HandshakeClient again(key_, kTerms);
  again.answer(first.challenge());
  EXPECT_FALSE(again.accepts(first.welcome()));
}

TEST_F(HandshakeTest, AReflectionFails) {
  HandshakeClient client(key_, kTerms);
  HandshakeServer server(key_, kTerms);
  ASSERT_TRUE(server.read(client.hello()));
  const HandshakeProof proof = client.answer(server.challenge());
  EXPECT_FALSE(client.accepts(proof));
  EXPECT_FALSE(server.accepts(server.welcome()));
}

TEST_F(HandshakeTest, EveryBitOfEveryMessageCounts) {
  const auto flip = [](auto message, size_t bit) {
    message[bit / 8] = static_cast<uint8_t>(message[bit / 8] ^ (1U << (bit % 8)));
    return message;
  };
  for (size_t bit = 0; bit < 8 * sizeof(HandshakeHello); ++bit) {
    HandshakeClient client(key_, kTerms);
    HandshakeServer server(key_, kTerms);
    EXPECT_FALSE(server.read(flip(client.hello(), bit)) &&
                 server.accepts(client.answer(server.challenge())))
        << "bit " << bit << " of the hello";
  }
  HandshakeClient client(key_, kTerms);
  HandshakeServer server(key_, kTerms);
  ASSERT_TRUE(let_in(server, client));
  for (size_t bit = 0; bit < 8 * sizeof(HandshakeProof); ++bit) {
    EXPECT_FALSE(server.accepts(flip(client.answer(server.challenge()), bit))) << bit;
    EXPECT_FALSE(client.accepts(flip(server.welcome(), bit))) << bit;
    EXPECT_FALSE(server.accepts(client.answer(flip(server.challenge(), bit)))) << bit;
  }
}

}  // namespace
}  // namespace lockstep
