#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/peer_table.h"
#include "core/base/file.h"

namespace lockstep {

/// What a connection is for. Both ends prove that they mean the same.
enum class Purpose : uint8_t { kControl = 1, kRing = 2 };

struct ConnectOptions {
  Purpose purpose = Purpose::kControl;
  std::vector<int> accept_from{};  ///< ranks that connect to this one, each once
  std::vector<int> connect_to{};   ///< ranks to which this one connects, each once
  /// Where to listen: a numeric address or the name of a network interface of this host. Empty:
  /// loopback when all ranks share a host, else every address of this host that another host may
  /// reach. Never the wildcard address.
  std::string bind_address{};
  std::chrono::milliseconds timeout{60000};  ///< for all connections of this rank together
};

/// Connected TCP sockets by the rank at the other end: non-blocking, close-on-exec, without Nagle's
/// delay, with nothing read beyond the handshake.
struct Connections {
  std::map<int, UniqueFd> accepted;
  std::map<int, UniqueFd> connected;
};

/// Connects the ranks in the pattern that their options describe together: where rank a has b in
/// `connect_to`, b has a in `accept_from`. All connections are made at the same time, so a ring
/// does not wait for itself. Each one is authenticated in both directions by a key that is drawn
/// for this call and spread over the bootstrap (comm/handshake.h); strangers are dropped and do not
/// disturb. Collective. Throws UsageError when the bind address is not of this host, and
/// TimeoutError naming the ranks that did not come.
Connections connect_ranks(Bootstrap& bootstrap, const PeerTable& peers,
                          const ConnectOptions& options);

}  // namespace lockstep
