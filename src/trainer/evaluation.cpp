#include "trainer/evaluation.h"

namespace lockstep {

HostBatch evaluation_batch(const TokenShard& shard, const EvaluationPlan& plan, int64_t index) {
  const int64_t time = plan.block_size;
  HostBatch batch;
  batch.tokens.resize(static_cast<size_t>(plan.batch_size * time));
  batch.targets.resize(batch.tokens.size());
  std::vector<int32_t> window(static_cast<size_t>(time) + 1);
  for (int64_t b = 0; b < plan.batch_size; ++b) {
    const int64_t begin = evaluation_offset(index * plan.batch_size + b,
                                            plan.batches * plan.batch_size, shard.size(), time);
    shard.read(begin, time + 1, plan.vocabulary, window.data());
    std::copy_n(window.begin(), time, batch.tokens.begin() + b * time);
    std::copy_n(window.begin() + 1, time, batch.targets.begin() + b * time);
  }
  return batch;
}

}  // namespace lockstep
