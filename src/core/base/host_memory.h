#pragma once

#include <cstdint>

namespace lockstep {

/// Bytes of host memory that this process can get without swapping: what the kernel estimates as
/// available, or what is left below the limit of the process's control group (version 2) when that
/// is less. -1 when neither can be read: then nothing is known.
int64_t available_host_bytes();

}  // namespace lockstep
