#pragma once

// The warpgroups of a block: which one a thread is of, and how the two that multiply, 0 and 1, wait
// for each other, by the block's named barriers.

#include "kernels/layout/warpgroup.h"

namespace lockstep::cuda {

/// The thread's warpgroup, from one lane, so that the compiler knows it to be the same for all:
/// descriptors then need no moves into uniform registers between products.
__device__ inline int warpgroup_index() {
  return __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 128, 0);
}

inline constexpr int kMultiplyingThreads = layout::kMultiplyingWarps * 32;

/// A block's named barriers: 0 is __syncthreads'.
inline constexpr int kMeeting = 1;
inline constexpr int kTurns = 2;  ///< of warpgroup 0; 1 has the next

/// The two wait for each other.
__device__ inline void meet_warpgroups() {
  asm volatile("bar.sync %0, %1;" ::"n"(kMeeting), "n"(kMultiplyingThreads) : "memory");
}

/// The two take turns, each by a barrier of its own: 0 has the first one once 1 passes it. Whoever
/// passes a turn lets it be taken: none is left at the end.
__device__ inline void take_turn(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(kTurns + group), "n"(kMultiplyingThreads) : "memory");
}
__device__ inline void pass_turn(int group) {
  asm volatile("bar.arrive %0, %1;" ::"r"(kTurns + 1 - group), "n"(kMultiplyingThreads) : "memory");
}

}  // namespace lockstep::cuda
