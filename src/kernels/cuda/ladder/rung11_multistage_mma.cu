// Rung 11, cp.async: several stages in flight, tiles filled past the registers, fragments read as
// they lie.
//
// Asynchronous copies need the tile in the order of global memory, so the fragment order of rung 10
// is given up for 16-byte chunks under a swizzle: a K-major tile is read by ldmatrix, an MN-major
// one by 16-byte loads that hand each lane eight neighbours of the extent. Which row of a fragment
// is which row of C is free to choose; chosen so, every access is 16 bytes wide, free of bank
// conflicts, and C leaves in 16-byte stores (kernels/layout/swizzle.h).
//
// The copies leave registers free, for warp tiles of 64 x 64: 16 FLOP for each byte that is read of
// shared memory, where rung 10 has 11. A multiprocessor then holds eight warps, two to a scheduler,
// and whatever is not a product is time in which the tensor cores may have none. So instructions
// count: rounding is one, addresses are constants or one operation away, and copies are spread
// among the products (gemm/mma_pipeline.cuh).

#include "kernels/cuda/gemm/mma.cuh"
#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep {
namespace {

using namespace cuda;

using Shape = layout::MmaTile256x128;

struct MultistageMma {
  static constexpr int kTileM = Shape::kBlockM;
  static constexpr int kTileN = Shape::kBlockN;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int kSharedBytes = Shape::kSharedBytes;
  template <Major kA, Major kB>
  static auto* entry(bool vectorized) {
    return vectorized ? &gemm_mma_kernel<RoundedProduct, Shape, true, kA, kB, Output>
                      : &gemm_mma_kernel<RoundedProduct, Shape, false, kA, kB, Output>;
  }
};

}  // namespace

Rung rung_multistage_mma() {
  return {11,
          "multistage mma",
          "cp.async, four stages, swizzled tiles in memory order",
          Precision::kTf32,
          &launch_rung<MultistageMma>,
          &rung_resources<MultistageMma>};
}

}  // namespace lockstep
