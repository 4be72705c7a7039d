#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "comm/collective_kind.h"
#include "core/base/range.h"

namespace lockstep {

/// What one collective is about. Each rank sends it ahead of the data, and the receiver compares it
/// with its own: ranks that call different collectives must not add up different things.
struct CollectiveHeader {
  uint64_t sequence = 0;  ///< of the collective in this run, from 1
  Range range;
  uint32_t element_bytes = 0;
  int32_t bucket = 0;
  CollectiveKind kind = CollectiveKind::kAllReduce;

  friend bool operator==(const CollectiveHeader&, const CollectiveHeader&) = default;
};

/// What a file descriptor must become for an edge to go on; fd -1: it waits for no descriptor.
struct Readiness {
  int fd = -1;
  int16_t events = 0;  ///< as poll(2)
};

/// The sending end of a directed connection between two neighbours of the ring. An edge serves one
/// window. None of the calls waits, except `sleep`. One thread at a time.
///
/// A message is a collective's header or a published range; messages are consumed in the order in
/// which they were published.
class SendEdge {
 public:
  SendEdge() = default;
  virtual ~SendEdge() = default;
  SendEdge(const SendEdge&) = delete;
  SendEdge& operator=(const SendEdge&) = delete;
  SendEdge(SendEdge&&) = delete;
  SendEdge& operator=(SendEdge&&) = delete;

  /// Whether `begin` may be called: false while the receiver is too many collectives behind, since
  /// not all of them have the sender wait for what the receiver does.
  virtual bool can_begin() { return true; }
  virtual void begin(const CollectiveHeader& header) = 0;
  /// The receiver may have this range of the window, which stays as it is until `drained`, or until
  /// data that depends on its arrival is consumed. It may stay here until `drained` is called.
  virtual void publish(Range range) = 0;
  /// Moves what can be moved now. True when nothing is left to be moved: the receiver gets all that
  /// was published without another call here.
  virtual bool flush() = 0;
  /// Like `flush`, and true when the receiver also needs nothing more of what was published, so
  /// that the window may be changed.
  virtual bool drained() = 0;
  /// While `flush` is false: what to wait for.
  virtual Readiness readiness() const { return {}; }
  /// While `flush` is true and `drained` or `can_begin` is not: returns after `limit`, or earlier
  /// when that may have become true.
  virtual void sleep(std::chrono::microseconds limit) = 0;
};

/// The receiving end.
class RecvEdge {
 public:
  RecvEdge() = default;
  virtual ~RecvEdge() = default;
  RecvEdge(const RecvEdge&) = delete;
  RecvEdge& operator=(const RecvEdge&) = delete;
  RecvEdge(RecvEdge&&) = delete;
  RecvEdge& operator=(RecvEdge&&) = delete;

  /// Takes the next message, a header, into `header`; false when it has not come yet.
  virtual bool try_begin(CollectiveHeader* header) = 0;
  /// Takes the next message, the data of `range`, into the window: added to or in place of what is
  /// there. False when it has not come yet; called again with the same arguments it goes on. Throws
  /// PeerLostError when what came is not that range, whole and unaltered.
  virtual bool try_reduce(Range range) = 0;
  virtual bool try_copy(Range range) = 0;
  /// Everything of this collective is consumed: tells the sender.
  virtual void end() = 0;

  virtual Readiness readiness() const { return {}; }
  /// For an edge without a descriptor: returns after `limit`, or earlier when something came.
  virtual void sleep(std::chrono::microseconds limit) = 0;
};

/// A lane of the ring: a rank's edges to both neighbours. Lanes serve one window beside each other.
struct RingEdges {
  std::unique_ptr<SendEdge> send;
  std::unique_ptr<RecvEdge> recv;
};
inline constexpr int kMostRingLanes = 8;

}  // namespace lockstep
