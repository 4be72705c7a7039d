#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/model/param_table.h"
#include "step_bench.h"
#include "trainer/batch_plan.h"
#include "trainer/bucket_choice.h"
#include "trainer/device_facts.h"
#include "trainer/replica.h"
#include "trainer/replica_shard.h"
#include "trainer/training_step.h"
#include "trainer/window_layout.h"

// The body of step_bench, for the one translation unit per device that instantiates it.

namespace lockstep {

inline HostBatch random_batch(int64_t tokens, int64_t vocabulary, uint64_t stream) {
  HostBatch batch;
  for (int64_t i = 0; i < tokens; ++i) {
    const uint64_t bits = random_bits(1, stream, static_cast<uint64_t>(i));
    batch.tokens.push_back(static_cast<int32_t>((bits >> 32) % static_cast<uint64_t>(vocabulary)));
    batch.targets.push_back(
        static_cast<int32_t>((bits & 0xffffffffU) % static_cast<uint64_t>(vocabulary)));
  }
  return batch;
}

template <class Device>
class StepBench {
 public:
  using Stream = typename Device::Stream;

  StepBench(const Group& group, const StepBenchConfig& config, Stream& stream)
      : group_(group),
        config_(config),
        plan_(plan_batch(config.train.batch_size, config.train.global_batch_size,
                         config.train.gradient_accumulation_steps, group.world_size())),
        model_(config.train.model(config.vocab_size)),
        window_(ParamTable(model_).arena_size(), plan_, 0, config.train.shard_optimizer),
        stream_(stream),
        communicator_(group.bootstrap, group.peers, group.control,
                      config.train.communicator(window_.elements())),
        replica_(stream_, model_, config.train.adamw(), 1, plan_.batch_size,
                 communicator_.window().subview(window_.gradients),
                 replica_shard(group, communicator_, window_)),
        bucket_elements_(bucket_size<Device>(config.train.bucket_elements(), group.bootstrap,
                                             stream_, communicator_, window_.summed().size())
                             .elements),
        batch_(random_batch(plan_.batch_size * model_.block_size, model_.vocab_size,
                            static_cast<uint64_t>(group.rank()))) {}

  /// Blocks of real steps and of their twins take turns, each round in another order, so that a
  /// change of the machine's pace hits all.
  StepFigures measure() {
    const Reduction reduction =
        config_.train.overlap ? Reduction::kOverlapped : Reduction::kAfterBackward;
    std::vector<Reduction> twins{reduction};
    if (group_.world_size() > 1) {
      twins.insert(twins.end(), {Reduction::kNone, Reduction::kRecordAlone});
      if (config_.train.overlap) {
        twins.push_back(Reduction::kAfterBackward);
      }
    }
    run_block(reduction, config_.warmup);
    std::map<Reduction, std::vector<StepResult>> results;
    for (int64_t round = 0; round < config_.rounds; ++round) {
      for (const Reduction twin : twins) {
        const std::vector<StepResult> block = run_block(twin, kWarmUp + config_.steps);
        results[twin].insert(results[twin].end(), block.begin() + kWarmUp, block.end());
      }
      std::rotate(twins.begin(), twins.begin() + 1, twins.end());
    }
    StepFigures figures = shape();
    const auto quantiles_of = [&](Reduction twin, auto select) {
      std::vector<double> values;
      std::transform(results[twin].begin(), results[twin].end(), std::back_inserter(values),
                     select);
      return slowest(group_.bootstrap, quantiles(std::move(values)));
    };
    const auto seconds = [](const StepResult& r) { return r.seconds; };
    figures.step = quantiles_of(reduction, seconds);
    figures.forward = quantiles_of(reduction, [](const StepResult& r) { return r.times.forward; });
    figures.backward =
        quantiles_of(reduction, [](const StepResult& r) { return r.times.backward; });
    figures.waited = quantiles_of(reduction, [](const StepResult& r) { return r.times.exposed; });
    figures.optimizer =
        quantiles_of(reduction, [](const StepResult& r) { return r.times.optimizer; });
    figures.nothing_sent = figures.step;
    if (group_.world_size() > 1) {
      figures.nothing_sent = quantiles_of(Reduction::kNone, seconds);
      figures.in_step = quantiles_of(Reduction::kRecordAlone, seconds);
      if (config_.train.overlap) {
        figures.after = quantiles_of(Reduction::kAfterBackward, seconds);
      }
      figures.comm = collectives_alone();
    }
    return figures;
  }

 private:
  static constexpr int64_t kWarmUp = 5;  ///< steps of a block that do not count

  StepFigures shape() const {
    StepFigures figures;
    figures.device = place_of(stream_).device;
    figures.transport = communicator_.transport_name();
    figures.ranks = group_.world_size();
    figures.rank_batch = plan_.batch_size * plan_.accumulation_steps;
    figures.tokens = plan_.global_batch_size() * model_.block_size;
    figures.reduced_bytes = window_.summed().size() * static_cast<int64_t>(sizeof(float));
    figures.title = fmt::format(
        "{} rank{}, {}, {}, {}, overlap {}{}; {} layers, {} heads, {} channels, block {}, "
        "vocabulary {}: {} parameters; {} x {} tokens a step",
        figures.ranks, figures.ranks == 1 ? "" : "s", figures.transport, figures.device,
        config_.train.precision, config_.train.overlap ? "on" : "off",
        window_.sharded() ? ", optimizer sharded" : "", model_.n_layer, model_.n_head,
        model_.n_embd, model_.block_size, config_.vocab_size, ParamTable(model_).parameter_count(),
        plan_.global_batch_size(), model_.block_size);
    return figures;
  }

  std::vector<StepResult> run_block(Reduction reduction, int64_t steps) {
    TrainingStep<Device> training(replica_, communicator_, group_.control, window_,
                                  {.batch = plan_,
                                   .rank = group_.rank(),
                                   .reduction = reduction,
                                   .bucket_elements = bucket_elements_,
                                   .graph = config_.train.cuda_graph,
                                   .times = !Device::kRunsBesideHost || config_.profile});
    group_.bootstrap.barrier();
    std::vector<StepResult> results;
    for (int64_t i = 0; i < steps; ++i) {
      training.enqueue(step_++, 1e-5, {}, [this]() -> const HostBatch& { return batch_; });
      if (training.pending() > TrainingStep<Device>::kAhead) {
        results.push_back(training.collect());
      }
    }
    while (training.pending() > 0) {
      results.push_back(training.collect());
    }
    return results;
  }

  Quantiles collectives_alone() {
    std::vector<double> times;
    group_.bootstrap.barrier();
    for (int64_t i = 0; i < kWarmUp + config_.steps; ++i) {
      const Clock::time_point start = Clock::now();
      if (window_.sharded()) {
        communicator_.reduce_scatter(stream_, window_.gradients, 0, SumLoad::kAlone);
        communicator_.all_gather(stream_, window_.parameters, 1, SumLoad::kAlone);
      } else {
        communicator_.all_reduce(stream_, window_.summed(), 0, SumLoad::kAlone);
      }
      communicator_.finish(stream_);
      stream_.synchronize();
      if (i >= kWarmUp) {
        times.push_back(seconds_since(start));
      }
    }
    set_zero(stream_, communicator_.window().subview(window_.summed()));
    return slowest(group_.bootstrap, quantiles(std::move(times)));
  }

  Group group_;
  StepBenchConfig config_;
  BatchPlan plan_;
  GptConfig model_;
  WindowLayout window_;
  Stream& stream_;
  Communicator<Device> communicator_;
  Replica<Device> replica_;
  int64_t bucket_elements_;
  HostBatch batch_;
  int64_t step_ = 0;
};

}  // namespace lockstep
