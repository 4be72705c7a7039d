#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// The address in shared memory, in bytes, that the instructions below take.
__device__ inline uint32_t shared_address(const float* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// The same value, which the compiler then keeps in a register: an address in shared memory it
/// would rather compute anew in every turn of a loop.
__device__ inline uint32_t kept(uint32_t value) {
  uint32_t copy;
  asm volatile("mov.b32 %0, %1;" : "=r"(copy) : "r"(value));
  return copy;
}

/// Starts copying 16 bytes from global to shared memory, past the registers. Both addresses are
/// multiples of 16.
__device__ inline void copy16_async(uint32_t to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/// The same where `exists`, else zeros, and nothing is read.
__device__ inline void copy16_async_or_zero(uint32_t to, const float* from, bool exists) {
  asm volatile(
      "{ .reg .pred absent; setp.eq.s32 absent, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, "
      "absent; }" ::"r"(to),
      "l"(from), "r"(static_cast<int>(exists))
      : "memory");
}

/// Starts copying 4 bytes, for rows that no wider copy can start at; only the first `bytes` are
/// read, the rest becomes zero.
__device__ inline void copy4_async(uint32_t to, const float* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

/// Closes the group of the copies started so far by this thread.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most kPending of this thread's groups are unfinished.
template <int kPending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace lockstep::cuda
