#include "core/device/cuda_branch.h"
#include "core/model/gpt_impl.h"
#include "kernels/cuda/ops.h"

namespace lockstep {

template class Gpt<CudaDevice>;

}  // namespace lockstep
