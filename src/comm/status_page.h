#pragma once

#include <cstdint>
#include <memory>

#include "comm/peer_table.h"
#include "comm/rank_status.h"
#include "core/base/file.h"

namespace lockstep {

/// What this rank is doing, in memory that other ranks of the host can map: it still tells the
/// exact step, phase and bucket after the rank was killed, at the cost of relaxed stores.
class StatusPage {
 public:
  StatusPage();

  void set_step(int64_t step) noexcept;
  void set_phase(Phase phase) noexcept;
  void set_bucket(int bucket) noexcept;
  RankStatus read() const noexcept;

  /// True for the first who calls this of one page, in whatever process: that one prints.
  bool claim_message() const noexcept;

  /// The descriptor to open in /proc/<pid>/fd.
  int fd() const noexcept { return fd_.get(); }

  /// The page of another rank of this host, read-only in use; null when it cannot be had, and then
  /// its heartbeats must do.
  static std::unique_ptr<const StatusPage> of(const PeerInfo& peer, int fd);

 private:
  struct Words;
  struct Unmap {
    void operator()(Words* words) const noexcept;
  };
  explicit StatusPage(UniqueFd fd);

  UniqueFd fd_;
  std::unique_ptr<Words, Unmap> words_;
};

}  // namespace lockstep
