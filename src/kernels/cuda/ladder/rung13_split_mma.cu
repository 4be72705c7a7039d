// Rung 13, split mma: single precision again, on the tensor cores.
//
// Every factor is the sum of two TF32 values, and a product that of three (gemm/mma_split.cuh): as
// exact as rung 12's, by three of rung 11's instructions on rung 11's pipeline. Warp tiles of 64 x
// 32 leave registers for factors in two parts and for sums that begin anew every sixteen k. They
// take 11 FLOP of the product from a byte that is read of shared memory, as rung 10's do, but the
// tensor cores do three for each of them: 32, twice what rung 11 has, so that shared memory hardly
// matters, and neither do the copies. No registers are spilled.

#include "kernels/cuda/gemm/mma_split.cuh"
#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep {
namespace {

using namespace cuda;

using Shape = layout::SplitMmaTile128x128;

struct SplitMma {
  static constexpr int kTileM = Shape::kBlockM;
  static constexpr int kTileN = Shape::kBlockN;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int kSharedBytes = Shape::kSharedBytes;
  template <Major kA, Major kB>
  static auto* entry(bool vectorized) {
    return vectorized ? &gemm_mma_kernel<SplitProduct, Shape, true, kA, kB, Output>
                      : &gemm_mma_kernel<SplitProduct, Shape, false, kA, kB, Output>;
  }
};

}  // namespace

Rung rung_split_mma() {
  return {.number = 13,
          .name = "split mma",
          .idea = "fp32: factors split in two TF32 values, on rung 11's pipeline",
          .precision = Precision::kFp32,
          .launch = &launch_rung<SplitMma>,
          .resources = &rung_resources<SplitMma>,
          .left_out = layout::kMostLeftOut};
}

}  // namespace lockstep
