#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/model/gpt_config.h"
#include "trainer/batch_plan.h"

namespace lockstep {

/// The bytes that a rank holds on its device, by class, but for what kernels and sums take on a GPU
/// besides. Pure arithmetic, before anything is allocated.
struct MemoryPlan {
  int64_t parameters = 0;
  int64_t gradients = 0;  ///< the communicator's window, but for parameters in it
  int64_t moments = 0;    ///< AdamW's two
  int64_t layers = 0;     ///< activations that forward keeps of all layers
  int64_t head = 0;       ///< and of the head: logits, mostly
  int64_t scratch = 0;    ///< of backward
  int64_t batches = 0;    ///< tokens and targets
  /// The arena that a checkpoint of shards is put together in, wherever that is: not in the total.
  int64_t gathered = 0;

  int64_t total() const {
    return parameters + gradients + moments + layers + head + scratch + batches;
  }
};

/// What a run's memory follows from.
struct RunShape {
  GptConfig model;
  BatchPlan batch;
  int64_t eval_iters = 1;
  bool sharded = false;  ///< the optimizer
};

MemoryPlan plan_memory(const RunShape& shape);

/// What a run may take: `free` bytes of `device`'s memory (-1: not known) for `ranks` ranks
/// together.
struct MemorySupply {
  std::string device;
  int64_t free = -1;
  int64_t ranks = 1;
  bool holds_checkpoints = false;  ///< what is gathered for them lies in this memory too
  /// Bytes that sums over the ranks take besides gradients of so many bytes.
  std::function<int64_t(int64_t)> sums = [](int64_t) { return int64_t{0}; };
  /// Bytes that the device's kernels take besides what plan_memory counts.
  std::function<int64_t(const RunShape&)> kernels = [](const RunShape&) { return int64_t{0}; };
};

/// The bytes that a rank takes of it.
int64_t needed_memory(const RunShape& shape, const MemorySupply& supply);

/// The largest batch size, accumulation and ranks staying as they are, of which each rank has
/// enough; 0 when not even one sequence fits.
int64_t largest_batch_size(const RunShape& shape, const MemorySupply& supply);

/// needed_memory. Throws OutOfMemoryError with what is asked, what there is and what
/// to change when they are not there for all ranks.
int64_t check_memory(const RunShape& shape, const MemorySupply& supply);

/// `trainer --plan`: the memory by class, what is free, and the largest batch size that fits.
std::string memory_report(const RunShape& shape, const MemorySupply& supply);

}  // namespace lockstep
