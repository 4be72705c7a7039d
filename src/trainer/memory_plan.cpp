#include "trainer/memory_plan.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/activation_plan.h"
#include "core/model/param_table.h"
#include "trainer/evaluation.h"
#include "trainer/window_layout.h"

namespace lockstep {
namespace {

double mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

/// The option that frees most when it is halved.
const char* largest_option(const RunShape& shape, const MemorySupply& supply) {
  std::array<std::pair<const char*, RunShape>, 4> halved = {
      {{"--n-embd", shape},
       {"--n-layer", shape},
       {"--block-size", shape},
       {"--gradient-accumulation-steps", shape}}};
  const auto halve = [](int64_t& value) { value = std::max<int64_t>(1, value / 2); };
  GptConfig& narrow = halved[0].second.model;
  halve(narrow.n_embd);
  halve(narrow.n_head);
  if (narrow.n_embd % narrow.n_head != 0) {
    narrow.n_head = 1;
  }
  halve(halved[1].second.model.n_layer);
  halve(halved[2].second.model.block_size);
  halve(halved[3].second.batch.accumulation_steps);
  const auto bytes = [&](const auto& option) { return needed_memory(option.second, supply); };
  return std::min_element(
             halved.begin(), halved.end(),
             [&](const auto& one, const auto& other) { return bytes(one) < bytes(other); })
      ->first;
}

/// The largest batch size up to `largest` into which a rank's part of the step can be divided,
/// where that is another: with a --global-batch-size no other is taken.
std::string divisor_of_step(const RunShape& shape, int64_t largest) {
  const int64_t sequences = shape.batch.batch_size * shape.batch.accumulation_steps;
  int64_t divisor = std::min(largest, sequences);
  while (sequences % divisor != 0) {
    --divisor;
  }
  return divisor == largest || largest >= sequences
             ? std::string()
             : fmt::format(", {} of those that divide a rank's {} sequences", divisor, sequences);
}

/// What would fit, as advice.
std::string advice(const RunShape& shape, const MemorySupply& supply) {
  const int64_t largest = largest_batch_size(shape, supply);
  if (largest > 0) {
    return fmt::format("--batch-size {} or less fits{}", largest, divisor_of_step(shape, largest));
  }
  RunShape smallest = shape;
  smallest.batch.batch_size = 1;
  return fmt::format("not even --batch-size 1 fits; {}a smaller {} frees most",
                     supply.ranks > 1 ? "take fewer ranks on a host, or " : "",
                     largest_option(smallest, supply));
}

/// How many sequences the activations below are for.
std::string activations_for(const RunShape& shape) {
  const int64_t training = shape.batch.batch_size;
  const int64_t evaluation =
      plan_evaluation(shape.eval_iters, shape.batch.global_batch_size(), shape.model).batch_size;
  return fmt::format("memory of a rank, which trains on {} sequence{} at a time and evaluates {}:",
                     training, training == 1 ? "" : "s", evaluation);
}

}  // namespace

MemoryPlan plan_memory(const RunShape& shape) {
  const auto& [model, batch, eval_iters, sharded] = shape;
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  constexpr auto kToken = static_cast<int64_t>(sizeof(int32_t));
  const EvaluationPlan evaluation = plan_evaluation(eval_iters, batch.global_batch_size(), model);
  const int64_t arena = ParamTable(model).arena_size();
  const ActivationPlan activations(model, std::max(batch.batch_size, evaluation.batch_size),
                                   model.block_size, ActivationPlan::Purpose::kTraining);
  const WindowLayout window(arena, batch, eval_iters, sharded);
  const int64_t sequences = batch.batch_size * batch.accumulation_steps + evaluation.batch_size;
  return {.parameters = arena * kFloat,
          .gradients = (window.elements() - window.parameters.size()) * kFloat,
          .moments = 2 * window.shard(0).size(arena) * kFloat,
          .layers = activations.layer_bytes(),
          .head = activations.head_bytes(),
          .scratch = activations.scratch_bytes(),
          .batches = 2 * sequences * model.block_size * kToken,
          .gathered = window.sharded() ? arena * kFloat : 0};
}

int64_t needed_memory(const RunShape& shape, const MemorySupply& supply) {
  const MemoryPlan memory = plan_memory(shape);
  return memory.total() + (supply.holds_checkpoints ? memory.gathered : 0) +
         supply.sums(memory.gradients) + supply.kernels(shape);
}

int64_t largest_batch_size(const RunShape& shape, const MemorySupply& supply) {
  const auto fits = [&](int64_t batch_size) {
    RunShape other = shape;
    other.batch.batch_size = batch_size;
    return needed_memory(other, supply) <= supply.free / supply.ranks;
  };
  if (!fits(1)) {
    return 0;
  }
  const int64_t most = ActivationPlan::kMostTokens / shape.model.block_size;
  int64_t low = 1;          // fits
  int64_t high = most + 1;  // does not
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

int64_t check_memory(const RunShape& shape, const MemorySupply& supply) {
  const int64_t needed = needed_memory(shape, supply);
  if (supply.free < 0 || needed <= supply.free / supply.ranks) {
    return needed;
  }
  const std::string ranks =
      supply.ranks == 1 ? std::string("the run needs")
                        : fmt::format("each of the {} ranks of this host needs", supply.ranks);
  throw OutOfMemoryError("{} {:.1f} MiB and {:.1f} MiB are free {}: {}", ranks, mib(needed),
                         mib(supply.free), supply.device, advice(shape, supply));
}

std::string memory_report(const RunShape& shape, const MemorySupply& supply) {
  const MemoryPlan memory = plan_memory(shape);
  std::vector<std::pair<const char*, int64_t>> rows = {
      {"parameters", memory.parameters}, {"gradients", memory.gradients},
      {"AdamW moments", memory.moments}, {"kept of layers", memory.layers},
      {"kept of the head", memory.head}, {"backward scratch", memory.scratch},
      {"batches", memory.batches},
  };
  if (supply.holds_checkpoints && memory.gathered > 0) {
    rows.emplace_back("for checkpoints", memory.gathered);
  }
  if (const int64_t sums = supply.sums(memory.gradients); sums > 0) {
    rows.emplace_back("sums over ranks", sums);
  }
  if (const int64_t kernels = supply.kernels(shape); kernels > 0) {
    rows.emplace_back("kernels' scratch", kernels);
  }
  rows.emplace_back("a rank in all", needed_memory(shape, supply));
  std::string text = activations_for(shape) + "\n";
  for (const auto& [name, bytes] : rows) {
    text += fmt::format("{:<18}{:>12.1f} MiB\n", name, mib(bytes));
  }
  if (supply.free < 0) {
    return text + fmt::format("what is free {} is not known", supply.device);
  }
  const std::string share = supply.ranks == 1 ? "" : fmt::format(", for {} ranks", supply.ranks);
  text += fmt::format("{:<18}{:>12.1f} MiB {}{}\n", "free", mib(supply.free), supply.device, share);
  return text + advice(shape, supply);
}

}  // namespace lockstep
