#pragma once

#include <chrono>
#include <memory>

#include "comm/control_plane.h"
#include "comm/cuda/collective_words.h"
#include "comm/peer_table.h"

namespace lockstep {

/// Stands between collectives that run on the GPU and the control plane, on a thread of its own:
/// ends their waits when the run is over for a cause elsewhere, reports a peer that did not come in
/// time, and shows the bucket under way to the other ranks.
class CollectiveWatch {
 public:
  /// `timeout`: for a peer that lives but does not come. What it refers to must outlive it.
  CollectiveWatch(ControlPlane& control, const PeerTable& peers, std::chrono::milliseconds timeout);
  /// As stop().
  ~CollectiveWatch();
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;
  CollectiveWatch(CollectiveWatch&&) = delete;
  CollectiveWatch& operator=(CollectiveWatch&&) = delete;

  /// Ends every wait, and returns when the GPU is idle: before memory goes that kernels use.
  void stop();

  /// For the kernels; the address of its words is good on the host and on the GPU, for life.
  WaitLimit limit() const;

  /// Throws the first cause of the group when a wait has ended early: what the collectives left
  /// behind is then no sum.
  void throw_if_failed();

  /// Seconds that collectives took on the GPU since the last call.
  double take_busy_seconds();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
