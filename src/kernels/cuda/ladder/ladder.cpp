#include <array>
#include <limits>

#include "core/base/error.h"
#include "kernels/cuda/ladder/rung.h"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep {

void check_rung_problem(const Gemm<CudaDevice>& problem) {
  constexpr int64_t largest =
      std::numeric_limits<int>::max() / 2;  // a tile beyond the edge still counts
  const int64_t m = problem.m;
  const int64_t n = problem.n;
  const int64_t k = problem.k;
  LOCKSTEP_CHECK(m >= 0 && n >= 0 && k >= 0 && m <= largest && n <= largest && k <= largest,
                 "a product of {} x {} x {}; the kernels count sizes up to {}", m, n, k, largest);
  LOCKSTEP_CHECK(
      problem.a.size() >= m * k && problem.b.size() >= k * n && problem.c.size() >= m * n,
      "a has {}, b {} and c {} elements for {} x {} x {}", problem.a.size(), problem.b.size(),
      problem.c.size(), m, n, k);
  LOCKSTEP_CHECK(!problem.accumulate && problem.bias.empty() && problem.residual.empty() &&
                     !problem.gelu && problem.gelu_derivative.empty() && problem.factor.empty(),
                 "the ladder's kernels fuse nothing");
}

std::span<const Rung> ladder() {
  static const std::array rungs = {
      rung_naive(),         rung_coalesced(),  rung_shared_tile(),    rung_register_column(),
      rung_register_tile(), rung_vectorized(), rung_warp_tile(),      rung_double_buffered(),
      rung_wmma(),          rung_mma(),        rung_multistage_mma(), rung_multistage_simt(),
      rung_split_mma(),
  };
  return rungs;
}

}  // namespace lockstep
