#pragma once

#include <cstdint>
#include <string>

#include "core/device/cuda_device.h"
#include "core/model/gpt_config.h"
#include "core/optim/optimizer.h"

namespace lockstep {

/// The time of one step's ops on a GPU, by name, as a table: each op between two marks of one
/// graph, so that no launch is in the way. A mark costs about a microsecond: the sum is a little
/// more than the step without them.
std::string profile_step(CudaStream& stream, const GptConfig& model, const AdamWOptions& adamw,
                         int64_t batch);

}  // namespace lockstep
