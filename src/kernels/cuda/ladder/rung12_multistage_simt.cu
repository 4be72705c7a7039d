// Rung 12, fp32 again with what rungs 10 and 11 taught: cp.async stages and a wider thread tile.
//
// The copies past the registers leave them to the sums: 128 elements a thread in place of 64, 96
// bytes of shared loads for 128 multiply-adds where rung 8 needs 64 for 64. Padded rows make every
// shared address a constant, and lanes are arranged so that neighbours read the same words. Eight
// warps are all that fit: what they wait for can hardly be covered by others.

#include "kernels/cuda/gemm/simt.cuh"
#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep {
namespace {

using namespace cuda;

using Shape = layout::SimtTile128x128;

struct MultistageSimt {
  static constexpr int kTileM = Shape::kBlockM;
  static constexpr int kTileN = Shape::kBlockN;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int kSharedBytes = Shape::kSharedBytes;
  template <Major kA, Major kB>
  static auto* entry(bool vectorized) {
    return vectorized ? &gemm_simt_kernel<Shape, true, kA, kB, Output>
                      : &gemm_simt_kernel<Shape, false, kA, kB, Output>;
  }
};

}  // namespace

Rung rung_multistage_simt() {
  return {12,
          "multistage simt",
          "fp32: cp.async stages, 128 elements per thread",
          Precision::kFp32,
          &launch_rung<MultistageSimt>,
          &rung_resources<MultistageSimt>};
}

}  // namespace lockstep
