#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/control_plane.h"
#include "core/data/sample_order.h"
#include "core/data/token_shard.h"
#include "trainer/replica.h"

namespace lockstep {

/// The windows of the validation split that an evaluation sees: `batches` times `batch_size`
/// sequences. Independent of the number of ranks, so that the value is too.
struct EvaluationPlan {
  int64_t batches = 0;
  int64_t batch_size = 0;
  int64_t block_size = 0;
  int64_t vocabulary = 0;
};

/// An evaluation batch is a global batch, but at most this many tokens (and at least one sequence):
/// more gains no speed and costs activations.
inline constexpr int64_t kEvaluationTokens = 4096;

/// What `eval_iters` may be: the number of an evaluation's sequences squared stays within 64 bits.
inline constexpr int64_t kMostEvaluationBatches = 100'000;

inline EvaluationPlan plan_evaluation(int64_t eval_iters, int64_t global_batch_size,
                                      const GptConfig& model) {
  const int64_t most = std::max<int64_t>(1, kEvaluationTokens / model.block_size);
  return {eval_iters, std::min(global_batch_size, most), model.block_size, model.vocab_size};
}

/// Batch number `index` of an evaluation.
HostBatch evaluation_batch(const TokenShard& shard, const EvaluationPlan& plan, int64_t index);

/// Mean validation loss. Batch i is computed by rank i mod world size into slot i of `slots` (one
/// per batch) of the communicator's window; the slots are summed over ranks exactly and then added
/// in order, so the value has the same bits on all ranks and for any number of them. Collective.
template <class Device>
double evaluate(Replica<Device>& replica, Communicator<Device>& communicator, ControlPlane& control,
                const TokenShard& shard, const EvaluationPlan& plan, Range slots, int rank,
                int world_size) {
  auto& stream = replica.stream();
  const View<Device, float> window = communicator.window().subview(slots);
  std::vector<float> losses(static_cast<size_t>(plan.batches), 0.0F);
  copy_from_host(stream, window, losses.data());
  for (int64_t i = rank; i < plan.batches; i += world_size) {
    control.set_phase(Phase::kEvaluate);
    replica.upload(evaluation_batch(shard, plan, i));
    replica.model().evaluate(stream, replica.tokens(), replica.targets(),
                             window.subview({i, i + 1}));
  }
  communicator.all_reduce(stream, slots, 0);
  communicator.finish(stream);
  copy_to_host(stream, losses.data(), View<Device, const float>(window));
  double total = 0;
  for (const float loss : losses) {
    total += static_cast<double>(loss);
  }
  return total / static_cast<double>(plan.batches);
}

}  // namespace lockstep
