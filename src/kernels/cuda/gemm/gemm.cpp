// gemm on the GPU, by the plan that is predicted to be the fastest.

#include "kernels/cuda/gemm/plan.h"
#include "kernels/cuda/gemm/planned_gemm.h"
#include "kernels/cuda/gemm/problem.h"
#include "kernels/cuda/ops.h"

namespace lockstep {

void gemm(CudaStream& stream, const Gemm<CudaDevice>& problem) {
  gemm_by_plan(stream, problem, plan_gemm(query_of(problem), stream.precision(), stream.facts()));
}

}  // namespace lockstep
