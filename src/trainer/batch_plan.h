#pragma once

#include <cstdint>

namespace lockstep {

/// How the sequences of one optimizer step are divided: micro-batches of `batch_size` sequences,
/// `accumulation_steps` of them one after the other on each of `world_size` ranks.
struct BatchPlan {
  int64_t batch_size = 0;
  int64_t accumulation_steps = 1;
  int world_size = 1;

  int64_t micro_batches() const { return accumulation_steps * world_size; }
  int64_t global_batch_size() const { return batch_size * micro_batches(); }

  friend bool operator==(const BatchPlan&, const BatchPlan&) = default;
};

/// The global batch when no batch option is given: nanoGPT's CPU recipe.
inline constexpr int64_t kDefaultGlobalBatchSize = 12;

/// What a step's sequences may be at most, over all ranks.
inline constexpr int64_t kMostSequences = 1'000'000'000;

/// Completes the three batch options, of which any may be 0 (not given) and none above
/// kMostSequences, for a number of ranks.
/// Without a global batch size it is batch_size * accumulation_steps * world_size when a batch size
/// is given, else kDefaultGlobalBatchSize. Throws UsageError with the numbers, and the nearest that
/// would do, when they contradict each other, do not divide or give too many sequences.
BatchPlan plan_batch(int64_t batch_size, int64_t global_batch_size, int64_t accumulation_steps,
                     int world_size);

}  // namespace lockstep
