#include "core/device/cpu_device.h"
#include "core/model/gpt_impl.h"

namespace lockstep {

template class Gpt<CpuDevice>;

}  // namespace lockstep
