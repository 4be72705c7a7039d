#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/cuda/peer_mapping.h"
#include "comm/cuda/probe_kernels.h"
#include "comm/peer_verdict.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// The stages of the peer probe that use a mapping. In each stage the ranks meet in pairs, both
/// directions at once; a pair that has failed leaves the rest out. Calls are collective.
class ProbeStages {
 public:
  ProbeStages(Bootstrap& bootstrap, PeerVerdict claims, PeerMapping& mapping);

  /// All of them, and the verdict. Once.
  PeerVerdict run();

 private:
  /// What a rank found about a pair.
  struct Found {
    int accessor;
    int owner;
    PeerFinding finding;
  };

  void stores(ProbeStage stage);
  void loads();
  void copies();
  void live(int blocks);
  void live_copies();
  void rates();
  void staging();

  /// Enters what all ranks found into the verdict of each.
  void share(ProbeStage stage, const std::vector<Found>& found);
  void write_own(uint32_t pieces);
  PeerFinding look(const std::byte* window, uint32_t pieces, uint32_t rest, uint32_t stale);
  PeerFinding look_from_host(uint32_t pieces, uint32_t rest, uint32_t stale);
  LiveResults play(int partner, int blocks, uint32_t rounds);
  void judge_live(int partner, int blocks, uint32_t rounds, const LiveResults& mine,
                  const LiveResults& theirs, std::vector<Found>* found) const;
  void copy_pieces(std::byte* to, const std::byte* from);
  /// Starts the kernel that waits for the partner's copies, and returns when it runs.
  void begin_watch(int partner, ProbeContent expected);
  /// What it saw, of message `number` of this pair.
  PeerFinding end_watch(ProbeContent expected, uint32_t stale, uint32_t number);
  /// GB/s of `copy(bytes)`, which enqueues on either stream, while the partner does the same.
  template <class Copy>
  double rate(int64_t bytes, const Copy& copy);
  void gather_rates();

  /// Waits for the GPU, but not for ever.
  void await();
  void await_while(const std::function<bool()>& busy);
  bool goes_on(int accessor, int owner) const;
  /// The values of a rank's own in its own memory, now.
  uint32_t own_key(int rank) const;

  Bootstrap& bootstrap_;
  PeerVerdict verdict_;
  PeerMapping& mapping_;
  int rank_;
  uint32_t epoch_ = 0;
  CudaStream stream_;
  CudaStream second_;
  CudaBuffer<std::byte> local_;  ///< a window that no other rank sees
  CudaBuffer<uint64_t> mark_;    ///< to be copied
  CudaBuffer<std::byte> report_;
  Buffer<CudaHost, std::byte> host_report_;
  Buffer<CudaHost, uint32_t> begun_;  ///< the epoch that the waiting kernel runs for
};

}  // namespace lockstep
