#pragma once

#include <cstdint>

#include "comm/cuda/collective_words.h"

namespace lockstep {

/// Flags are counts in GPU memory that another GPU of the host raises. What was written before a
/// post, by the thread that posts or by threads that it synchronised with, is visible to who has
/// seen the count.
__device__ inline void post(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ inline uint32_t seen(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ inline void post(uint64_t* flag, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}
__device__ inline uint64_t seen(const uint64_t* flag) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
  return value;
}

__device__ inline uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

/// Whether a wait that began at `start` has to end. Reads host memory, which takes about a
/// microsecond: not to be called in each turn of a wait.
__device__ inline bool must_end(const WaitLimit& limit, uint64_t start, int rank, int bucket) {
  volatile CollectiveWords* words = limit.words;
  if (words->abort != 0) {
    return true;
  }
  if (nanoseconds() - start < limit.timeout_ns) {
    return false;
  }
  words->late_bucket = bucket;
  words->late_rank = rank;
  __threadfence_system();
  words->abort = 1;
  return true;
}

/// Whether `count` has come to `value`, both counted modulo 2^32.
__device__ inline bool has_come_to(uint32_t count, uint32_t value) {
  return static_cast<int32_t>(count - value) >= 0;
}

/// Of a wait in GPU memory, between looks at the host's: about 100 microseconds.
inline constexpr int kTurnsBetweenLooks = 256;

/// Ends the run because `rank` is at another sum than this one in `bucket`.
__device__ inline void report_other_sum(CollectiveWords* words, int rank, int bucket) {
  volatile CollectiveWords* shown = words;
  if (shown->abort != 0) {
    return;
  }
  shown->late_rank = rank;
  shown->late_bucket = bucket;
  shown->disagrees = 1;
  __threadfence_system();
  shown->abort = 1;
}

/// Waits until `flag`, or the lower half of a wide one, has come to `value`, counted modulo 2^32.
/// False when the run is aborted or the time is over: the collective must then be left without
/// touching memory of others. `rank` and `bucket` say whom the wait is for. One thread.
template <class Flag>
__device__ __forceinline__ bool wait_for(const Flag* flag, uint32_t value, const WaitLimit& limit,
                                         int rank, int bucket) {
  const uint64_t start = nanoseconds();
  while (true) {
    for (int turn = 0; turn < kTurnsBetweenLooks; ++turn) {
      if (has_come_to(static_cast<uint32_t>(seen(flag)), value)) {
        return true;
      }
    }
    if (must_end(limit, start, rank, bucket)) {
      return false;
    }
  }
}

}  // namespace lockstep
