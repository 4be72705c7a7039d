#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/device/cuda_device.h"
#include "kernels/gemm.h"

namespace lockstep {

/// One step of the ladder: a whole matrix product kernel that changes one thing about the rung
/// before it.
struct Rung {
  int number;
  std::string_view name;
  std::string_view idea;
  Precision precision;  ///< of what its products err by, not of what instructions it takes

  /// c = op(a) · op(b) for any shape and transposes; the other fields of the problem must be empty.
  /// Enqueues only.
  void (*launch)(CudaStream& stream, const Gemm<CudaDevice>& problem);

  /// What the compiler and the hardware make of the kernel.
  struct Resources {
    int registers = 0;        ///< a thread
    int spilled_bytes = 0;    ///< a thread, in local memory
    int shared_bytes = 0;     ///< a block
    int resident_blocks = 0;  ///< on a multiprocessor; 0: one's shared memory is too large for it
    int threads = 0;          ///< a block
  };
  /// Of the kernel for these transposes, with aligned rows.
  Resources (*resources)(Transpose trans_a, Transpose trans_b);

  int compute_capability = 0;  ///< the one that has what it needs, as 90 for 9.0; 0: any
  double left_out = 0;         ///< of each product, as a share of it, at most
};

/// All rungs, in order.
std::span<const Rung> ladder();

}  // namespace lockstep
