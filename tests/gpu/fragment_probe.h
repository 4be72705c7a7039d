#pragma once

#include "core/device/cuda_device.h"

namespace lockstep {

// One mma.sync for each pair of one register of A and one of B: those two hold 1, all others 0.
inline constexpr int kProbeA = 32 * 4;  // lane and register of A
inline constexpr int kProbeB = 32 * 2;
inline constexpr int kProbeD = 32 * 4;

/// d[(a * kProbeB + b) * kProbeD + lane * 4 + register] = what each register of D then holds.
void probe_fragments(CudaStream& stream, CudaView<float> d);

}  // namespace lockstep
