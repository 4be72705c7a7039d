#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/sample_order.h"
#include "core/data/token_shard.h"

namespace lockstep {

/// One micro-batch of one rank, on the host.
struct HostBatch {
  std::vector<int32_t> tokens;   ///< (batch, time)
  std::vector<int32_t> targets;  ///< (batch, time): tokens one position later
};

/// Which samples of the global batch this rank takes.
struct LoaderShape {
  int rank = 0;
  int world_size = 1;
  int64_t batch_size = 0;          ///< sequences per rank and micro-step
  int64_t accumulation_steps = 1;  ///< micro-steps per step
  int64_t block_size = 0;
  int64_t vocabulary = 0;

  int64_t global_batch() const { return batch_size * accumulation_steps * world_size; }
};

/// Yields training micro-batches in order, prepared ahead on a thread of its own. The global batch
/// is cut into micro-batches of batch_size sequences; micro-batch number j of a step goes to rank j
/// mod world_size, so that accumulating on one rank and spreading over several see the same
/// micro-batches. Errors of the thread (a token id out of range in a shard that changed) are thrown
/// by next().
class DataLoader {
 public:
  /// `shard` must outlive the loader. `first_step` > 0 continues a run.
  DataLoader(const TokenShard& shard, uint64_t seed, const LoaderShape& shape, int64_t first_step);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;
  DataLoader(DataLoader&&) = delete;
  DataLoader& operator=(DataLoader&&) = delete;

  /// The next micro-batch; valid until the call after.
  const HostBatch& next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
