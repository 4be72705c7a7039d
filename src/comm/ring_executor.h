#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "comm/abort_source.h"
#include "comm/collective_kind.h"
#include "comm/ring_schedule.h"
#include "comm/transport.h"
#include "core/base/error.h"
#include "core/base/range.h"

namespace lockstep {

struct RingOptions {
  int rank = 0;
  int world_size = 1;
  std::chrono::milliseconds timeout{120000};  ///< of a wait without progress, in running time
  RingPace pace{};
};

/// Walks ring schedules over the two edges of a rank. The only code that touches edges after they
/// are connected. One thread at a time. After an error the ring is unusable.
class RingExecutor {
 public:
  /// `abort` outlives the executor.
  RingExecutor(const RingOptions& options, std::unique_ptr<SendEdge> send,
               std::unique_ptr<RecvEdge> recv, const AbortSource& abort);

  /// Runs one collective over `range` of all ranks' windows. When it returns this rank's window
  /// holds the result; the successor may still read the range until `drain` returns. Throws the
  /// first cause when the run is aborted, TimeoutError, PeerLostError, or RanksDisagreeError when
  /// the predecessor is in another collective.
  void run(Range range, int bucket, CollectiveKind kind = CollectiveKind::kAllReduce);

  /// Waits until the successor has read everything.
  void drain();

  /// How long a wait looks again and again before it gives the core away, from now on. Any thread.
  void set_spin(std::chrono::microseconds spin) { spin_ = spin; }

 private:
  /// Parts of a collective: the first four are between this rank and its predecessor, the others
  /// between it and its successor.
  enum class Stage : uint8_t { kStart, kReduce, kCopy, kAnswer, kSend, kEnd };
  static std::string_view name(Stage stage);
  static bool sends(Stage stage) { return stage >= Stage::kSend; }

  void agree(const CollectiveHeader& mine);
  template <class Call>
  auto naming_peer(Stage stage, Call call);
  template <class Attempt>
  void wait(Stage stage, Attempt attempt);
  void idle(Stage stage);
  int peer(Stage stage) const { return sends(stage) ? successor_ : predecessor_; }
  std::chrono::milliseconds limit(Stage stage) const;
  [[noreturn]] void throw_late(Stage stage) const;
  [[noreturn]] void throw_lost(Stage stage, const PeerLostError& error) const;

  RingOptions options_;
  int predecessor_;
  int successor_;
  std::unique_ptr<SendEdge> send_;
  std::unique_ptr<RecvEdge> recv_;
  const AbortSource& abort_;
  std::atomic<std::chrono::microseconds> spin_{std::chrono::microseconds{0}};
  uint64_t sequence_ = 0;
  int bucket_ = -1;
  CollectiveKind kind_ = CollectiveKind::kAllReduce;
};

}  // namespace lockstep
