#include "core/device/cpu_device.h"
#include "core/optim/optimizer_impl.h"

namespace lockstep {

template class Optimizer<CpuDevice>;

}  // namespace lockstep
