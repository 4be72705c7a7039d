#pragma once

#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/training_state.h"

namespace lockstep {

/// BLAKE2b-256 over everything that decides how a run goes on: architecture, step, seed, data
/// cursor, global batch, losses, precision, data set, vocabulary, and every tensor's name, shape
/// and bits in order. Two runs that went the same way have the same hash. Who wrote the state
/// (ranks, device, build, options) is not part of it.
std::string state_hash(const TrainingState& state, const std::vector<NamedTensor>& tensors);

/// The same of a checkpoint; reads all of it, one tensor in memory at a time. Throws CorruptError
/// or IoError.
std::string state_hash(const CheckpointReader& reader);

}  // namespace lockstep
