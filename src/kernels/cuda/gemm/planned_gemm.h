#pragma once

#include <optional>

#include "core/device/cuda_device.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/cuda/gemm/transposed_copy.h"
#include "kernels/gemm.h"

// Products as plans say: part after part of k, with copies before them and sums behind.

namespace lockstep {
namespace cuda {

/// What is done to operands while they are read, by kernels of parts.
struct OnTheWay {
  std::optional<RowNorm> b_norm;  ///< b, which is copied, is this norm's output, of problem.b
  CudaView<float> a_sums;         ///< (m), or none: (+)= the sums of a's rows, as c
};

/// Enqueues all of a product that check_product has passed, and that is not empty.
void run_gemm(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan,
              const OnTheWay& on_the_way);

}  // namespace cuda

/// gemm by a plan of the caller's choice, for tests and benches; its kernel is one of kernels_for.
void gemm_by_plan(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan);

}  // namespace lockstep
