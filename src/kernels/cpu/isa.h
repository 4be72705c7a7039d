#pragma once

#include <string_view>

namespace lockstep {

/// The vector instruction sets that the CPU kernels are built for.
enum class Isa { kPortable, kAvx2, kAvx512 };

/// The best set that this processor has and LOCKSTEP_ISA=portable|avx2|avx512 in the environment
/// allows; chosen once. Throws UsageError when the environment asks for one that the processor
/// lacks. Ranks compare it at start: different sets round differently, and replicas must not.
Isa cpu_isa();
std::string_view isa_name(Isa isa);

}  // namespace lockstep
