#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/connection.h"

namespace lockstep {

/// How the two ends of a new connection prove to each other that they belong to the same group, as
/// bytes without sockets. Four messages of fixed size, so that no length, type or text of a
/// stranger is ever believed:
///
///   client -> server  Hello      group, purpose, ranks, world size, client's nonce
///   server -> client  Challenge  server's nonce
///   client -> server  Proof      keyed BLAKE2b over "client", Hello and Challenge
///   server -> client  Proof      keyed BLAKE2b over "server", Hello and Challenge
///
/// Fresh nonces on both sides make a replay fail, the word and the ranks a reflection. The client
/// is the end that connects. A server tells a stranger nothing but a nonce.
using HandshakeHello = std::array<uint8_t, 80>;
using HandshakeChallenge = std::array<uint8_t, 32>;
using HandshakeProof = std::array<uint8_t, 32>;

/// The secret of one group of connections, 256 bits; wiped when destroyed. It travels over the
/// bootstrap only, never by command line, environment or log.
class GroupKey {
 public:
  static GroupKey random();
  /// Throws InternalError when `bytes` has not the size of a key.
  static GroupKey from_bytes(std::string_view bytes);
  ~GroupKey();
  GroupKey(const GroupKey&) = default;
  GroupKey& operator=(const GroupKey&) = default;
  GroupKey(GroupKey&&) = default;
  GroupKey& operator=(GroupKey&&) = default;

  const std::array<uint8_t, 32>& bytes() const { return bytes_; }

 private:
  GroupKey() = default;
  std::array<uint8_t, 32> bytes_{};
};

/// What both ends must mean alike.
struct HandshakeTerms {
  Purpose purpose = Purpose::kControl;
  int client = 0;  ///< rank that connects
  int server = 0;  ///< rank that accepts
  int world_size = 0;
};

class HandshakeClient {
 public:
  HandshakeClient(const GroupKey& key, const HandshakeTerms& terms);

  const HandshakeHello& hello() const { return hello_; }
  HandshakeProof answer(const HandshakeChallenge& challenge);
  /// Whether the server belongs to the group; after `answer`.
  bool accepts(const HandshakeProof& proof) const;

 private:
  const GroupKey& key_;
  HandshakeHello hello_;
  HandshakeChallenge challenge_{};
};

class HandshakeServer {
 public:
  /// `terms.client` is not looked at: the Hello names it.
  HandshakeServer(const GroupKey& key, const HandshakeTerms& terms);

  /// The rank that the client claims to be; nothing when it speaks of another group, purpose,
  /// server, size or protocol.
  std::optional<int> read(const HandshakeHello& hello);
  const HandshakeChallenge& challenge() const { return challenge_; }
  /// Whether the client proved its claim; after `read`.
  bool accepts(const HandshakeProof& proof) const;
  HandshakeProof welcome() const;

 private:
  const GroupKey& key_;
  HandshakeTerms terms_;
  HandshakeHello hello_{};
  HandshakeChallenge challenge_;
};

}  // namespace lockstep
