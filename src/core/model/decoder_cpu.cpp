#include "core/device/cpu_device.h"
#include "core/model/decoder_impl.h"

namespace lockstep {

template class Decoder<CpuDevice>;

}  // namespace lockstep
