#include "core/device/cuda_branch.h"
#include "core/model/decoder_impl.h"
#include "kernels/cuda/ops.h"

namespace lockstep {

template class Decoder<CudaDevice>;

}  // namespace lockstep
