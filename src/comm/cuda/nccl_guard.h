#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "comm/control_plane.h"
#include "comm/cuda/collective_words.h"
#include "comm/cuda/nccl.h"
#include "comm/peer_table.h"
#include "core/base/clock.h"

namespace lockstep {

/// Ends sums of NCCL that would wait for ever, on a thread of its own. NCCL's kernels know nothing
/// of CollectiveWords: when the run is over for a cause elsewhere they have to be aborted, and that
/// a sum takes too long the host has to find by what the GPU shows of it.
class NcclGuard {
 public:
  /// `words`: as the marks around each sum write them. `timeout`: for a sum, of which NCCL does not
  /// tell who is late; past it, or when NCCL finds something wrong itself, the guard reports that
  /// to the group. What it refers to must outlive it.
  NcclGuard(Nccl& nccl, ControlPlane& control, const PeerTable& peers, int rank,
            std::chrono::milliseconds timeout, const CollectiveWords& words);
  /// As stop().
  ~NcclGuard();
  NcclGuard(const NcclGuard&) = delete;
  NcclGuard& operator=(const NcclGuard&) = delete;
  NcclGuard(NcclGuard&&) = delete;
  NcclGuard& operator=(NcclGuard&&) = delete;

  /// Has the sums aborted, soon.
  void abort();
  /// The end of its watch. After an abort the graphs that captured sums must be gone.
  void stop();

 private:
  void serve();
  bool nccl_failed();
  bool is_late(int bucket, Clock::duration under_way);

  Nccl& nccl_;
  ControlPlane& control_;
  const PeerTable& peers_;
  int rank_;
  std::chrono::milliseconds timeout_;
  const CollectiveWords& words_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool aborting_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep
