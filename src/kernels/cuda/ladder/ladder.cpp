#include <array>

#include "core/base/error.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/problem.h"
#include "kernels/cuda/ladder/rung.h"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep {

void check_rung_problem(const Gemm<CudaDevice>& problem) {
  cuda::check_product(problem);
  LOCKSTEP_CHECK(cuda::features_of(problem) == cuda::kPlain, "the ladder's kernels fuse nothing");
}

std::span<const Rung> ladder() {
  static const std::array rungs = {
      rung_naive(),         rung_coalesced(),  rung_shared_tile(),    rung_register_column(),
      rung_register_tile(), rung_vectorized(), rung_warp_tile(),      rung_double_buffered(),
      rung_wmma(),          rung_mma(),        rung_multistage_mma(), rung_multistage_simt(),
      rung_split_mma(),     rung_tma_mma(),
  };
  return rungs;
}

}  // namespace lockstep
