#include "trainer/run_plan.h"

#include "core/base/build_id.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

/// A sample that could not be printed must not come out after hours of training.
void check_prompt(const TrainConfig& config, const Dataset& dataset) {
  if (config.prompt.empty() || config.sample_tokens == 0) {
    return;
  }
  if (!dataset.tokenizer()) {
    throw UsageError("--prompt needs a vocabulary, and {} has no vocab.json", config.data_dir);
  }
  try {
    dataset.tokenizer()->encode(config.prompt);
  } catch (const UsageError& error) {
    throw UsageError("--prompt: {}", error.what());
  }
}

}  // namespace

RunPlan::RunPlan(const TrainConfig& config, int world_size)
    : batch(plan_batch(config.batch_size, config.global_batch_size,
                       config.gradient_accumulation_steps, world_size)),
      dataset(config.data_dir, config.block_size),
      model(config.model(dataset.vocab_size())),
      evaluation(plan_evaluation(config.eval_iters, batch.global_batch_size(), model)),
      window(ParamTable(model).arena_size(), batch, config.eval_iters, config.shard_optimizer) {
  check_prompt(config, dataset);
}

std::map<std::string, std::string> RunPlan::shared_facts(const TrainConfig& config) const {
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : config.options()) {
    facts["--" + name] = value;
  }
  for (const char* own : {"--data-dir", "--out-dir", "--threads", "--bind-address"}) {
    facts.erase(own);
  }
  facts["build"] = build_id();
  facts["data"] = dataset.fingerprint();
  return facts;
}

RunIdentity RunPlan::identity(const TrainConfig& config) const {
  return {model, static_cast<uint64_t>(config.seed), batch.global_batch_size(),
          dataset.fingerprint()};
}

}  // namespace lockstep
