#include "core/optim/optimizer_impl.h"
#include "kernels/cuda/ops.h"

namespace lockstep {

template class Optimizer<CudaDevice>;

}  // namespace lockstep
