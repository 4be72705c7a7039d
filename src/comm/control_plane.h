#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/bootstrap.h"
#include "comm/peer_table.h"
#include "comm/rank_status.h"
#include "core/base/error.h"

namespace lockstep {

struct ControlOptions {
  std::chrono::milliseconds heartbeat_interval{500};
  std::chrono::milliseconds peer_timeout{10000};  ///< silence after which a rank counts as stopped
  std::chrono::milliseconds connect_timeout{60000};  ///< for the group to come together
  /// For ranks that live but do not finish, from when rank 0 has: until then it saves and samples
  /// for all of them, for as long as that takes.
  std::chrono::milliseconds finish_timeout{120000};
  std::string bind_address{};  ///< as ConnectOptions::bind_address
};

/// The small side channel of a run: one authenticated connection of every rank to rank 0 on a
/// thread of its own. It carries heartbeats with each rank's status, and the abort. When a rank
/// dies, stops or reports an error, every other rank learns the first cause (not its consequences)
/// and leaves with it; a rank whose ControlPlane is not destroyed within one second is ended by the
/// control thread. One rank prints the one line (may_print). When the launcher (mpirun) is killed,
/// the control thread ends the process. With one rank only this last duty remains.
class ControlPlane {
 public:
  /// Connects the group. Collective. Throws TimeoutError listing the ranks that did not come.
  ControlPlane(Bootstrap& bootstrap, const PeerTable& peers, const ControlOptions& options);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;
  ControlPlane(ControlPlane&&) = delete;
  ControlPlane& operator=(ControlPlane&&) = delete;

  /// What this rank is doing now. Cheap (relaxed stores), any thread.
  void set_step(int64_t step) noexcept;
  void set_phase(Phase phase) noexcept;
  void set_bucket(int bucket) noexcept;  ///< -1: none

  /// In place of the options' from now on; the same on all ranks.
  void set_peer_timeout(std::chrono::milliseconds timeout);

  /// True once the run is over for a cause elsewhere. Every wait of the data plane polls it. Cheap,
  /// any thread.
  bool aborted() const noexcept;
  /// Throws AbortedError with the first cause and its code once the run is aborted. A wait that
  /// broke for an unknown reason (a peer's connection closed) calls `await_cause`, which gives the
  /// cause half a second to arrive and throws it, or returns.
  void throw_if_aborted() const;
  void await_cause() const;

  /// This rank fails: tells every rank the cause. The first report in the group wins, and with it
  /// the run is aborted when this returns, about a second later even if rank 0 does not answer. An
  /// AbortedError is no news and is ignored; with one rank, or after finish(), nobody is told and
  /// nothing happens. Any thread.
  void report(const Error& error) noexcept;

  /// The orderly end: returns when every rank has called it; from then on a closed connection is no
  /// failure. Throws the first cause when the run is aborted instead.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
