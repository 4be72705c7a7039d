#pragma once

#include "core/device/cuda_device.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/gemm.h"
#include "kernels/weight_gradient.h"

namespace lockstep {

/// weight_gradient by a plan of the caller's choice for its product, for tests.
void weight_gradient_by_plan(CudaStream& stream, const WeightGradient<CudaDevice>& args,
                             const GemmPlan& plan);

/// That product, of args.x.
Gemm<CudaDevice> product_of(const WeightGradient<CudaDevice>& args);

}  // namespace lockstep
