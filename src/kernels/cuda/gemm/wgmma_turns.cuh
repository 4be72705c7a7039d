#pragma once

// Two warpgroups, 0 and 1, that take turns: 0 has the first one once 1 passes it. By named barriers
// 2 and 3: 1 is meet_warpgroups'. Whoever passes a turn lets it be taken: none is left at the end.

namespace lockstep::cuda {

__device__ inline void take_turn(int group) {
  asm volatile("bar.sync %0, 256;" ::"r"(2 + group) : "memory");
}
__device__ inline void pass_turn(int group) {
  asm volatile("bar.arrive %0, 256;" ::"r"(3 - group) : "memory");
}

}  // namespace lockstep::cuda
