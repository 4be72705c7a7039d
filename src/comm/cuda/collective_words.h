#pragma once

#include <cstdint>

namespace lockstep {

/// What a host and its GPU tell each other about collectives that run on the GPU, in page-locked
/// host memory that both address. A kernel that waits for another GPU ends its wait when `abort` is
/// set, and sets it itself when its time is over, so that what is enqueued behind it does not wait
/// as long again.
struct CollectiveWords {
  uint32_t abort = 0;        ///< not 0: no wait goes on
  int32_t late_rank = -1;    ///< GPU: who did not come in time, or came to another sum
  int32_t late_bucket = -1;  ///< GPU: and in which bucket
  uint32_t disagrees = 0;    ///< GPU: not 0 for another sum
  int32_t bucket = -1;       ///< GPU: of the collective under way; -1: none
  uint64_t busy_ns = 0;      ///< GPU: the time that collectives took so far, as CommTimes
};

/// How the waits of a kernel end.
struct WaitLimit {
  CollectiveWords* words = nullptr;  ///< whose address is good on the host and on the GPU
  uint64_t timeout_ns = 0;           ///< of the GPU's clock, from the begin of the wait
};

}  // namespace lockstep
