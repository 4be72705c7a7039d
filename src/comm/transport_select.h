#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/peer_table.h"

namespace lockstep {

/// The words by which options name the choices, in their order.
inline const std::vector<std::string> kTransportWords = {"auto", "peer",   "staged",
                                                         "shm",  "socket", "nccl"};

/// The choice that a word names, else InternalError; and back.
TransportChoice transport_choice(std::string_view word);
std::string transport_word(TransportChoice choice);

/// Whether it has no meaning for windows in the memory of the CPU.
bool serves_gpus_only(TransportChoice choice);
/// Whether sums over so many ranks have the bits of the ring of the CPU.
bool has_ring_bits(TransportChoice choice, int ranks);

enum class TransportKind : uint8_t { kShm, kSocket };

/// The transport of each edge of the ring, by the rank that sends: element r is the edge from r to
/// its successor. A pure function of what every rank knows alike, so both ends of an edge agree.
///
/// `maps_predecessor[r]`: rank r has mapped the region of the rank before it. Shared memory is
/// taken where it can be; socket everywhere else, or everywhere when it is forced. Throws
/// UsageError naming the pair when shm is forced and an edge cannot have it.
std::vector<TransportKind> select_transports(const PeerTable& peers, TransportChoice choice,
                                             const std::vector<bool>& maps_predecessor);

/// "shm", "socket", or "shm+socket" for a ring of both.
std::string transport_names(const std::vector<TransportKind>& edges);

}  // namespace lockstep
