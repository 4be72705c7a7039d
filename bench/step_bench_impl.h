#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
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
#include "trainer/training_step.h"
#include "trainer/window_layout.h"

// The body of step_bench, for the one translation unit per device that instantiates it.

namespace lockstep {

inline Quantiles quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<size_t>(std::llround(q * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.5), at(0.95)};
}

inline Quantiles slowest(Bootstrap& bootstrap, Quantiles mine) {
  Quantiles worst;
  for (const std::string& text :
       bootstrap.all_gather(fmt::format("{} {}", mine.median, mine.p95))) {
    Quantiles theirs;
    std::sscanf(text.c_str(), "%lf %lf", &theirs.median, &theirs.p95);
    worst.median = std::max(worst.median, theirs.median);
    worst.p95 = std::max(worst.p95, theirs.p95);
  }
  return worst;
}

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
        window_(ParamTable(model_).arena_size(), plan_, 0),
        stream_(stream),
        communicator_(group.bootstrap, group.peers, group.control, communicator_options()),
        replica_(stream_, model_, config.train.adamw(), 1, plan_.batch_size,
                 communicator_.window().subview(window_.gradients)),
        bucket_elements_(bucket_size<Device>(config.train.bucket_elements(), group.bootstrap,
                                             stream_, communicator_)
                             .elements),
        batch_(random_batch(plan_.batch_size * model_.block_size, model_.vocab_size,
                            static_cast<uint64_t>(group.rank()))) {}

  /// Blocks of real steps, of steps with nothing sent and of steps without overlap take turns, so
  /// that a change of the machine's pace hits all.
  StepFigures measure() {
    std::vector<StepResult> real;
    std::vector<StepResult> alone;
    std::vector<StepResult> after;
    std::vector<double> comm;
    const Reduction reduction =
        config_.train.overlap ? Reduction::kOverlapped : Reduction::kAfterBackward;
    for (int64_t round = 0; round < config_.rounds; ++round) {
      run_block(reduction, real);
      if (group_.world_size() > 1) {
        run_block(Reduction::kNone, alone);
        if (config_.train.overlap) {
          run_block(Reduction::kAfterBackward, after);
        }
        run_collectives(comm);
      }
    }
    StepFigures figures = shape();
    figures.step = quantiles_of(real, [](const StepResult& r) { return r.seconds; });
    figures.forward = quantiles_of(real, [](const StepResult& r) { return r.times.forward; });
    figures.backward = quantiles_of(real, [](const StepResult& r) { return r.times.backward; });
    figures.waited = quantiles_of(real, [](const StepResult& r) { return r.times.exposed; });
    figures.optimizer = quantiles_of(real, [](const StepResult& r) { return r.times.optimizer; });
    figures.replica = figures.step;
    if (group_.world_size() > 1) {
      figures.replica = quantiles_of(alone, [](const StepResult& r) { return r.seconds; });
      if (config_.train.overlap) {
        figures.after = quantiles_of(after, [](const StepResult& r) { return r.seconds; });
      }
      figures.comm = slowest(group_.bootstrap, quantiles(std::move(comm)));
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
    figures.reduced_bytes = window_.elements() * static_cast<int64_t>(sizeof(float));
    figures.title = fmt::format(
        "{} rank{}, {}, {}, {}, overlap {}; {} layers, {} heads, {} channels, block {}, vocabulary "
        "{}: {} parameters; {} x {} tokens a step",
        figures.ranks, figures.ranks == 1 ? "" : "s", figures.transport, figures.device,
        config_.train.precision, config_.train.overlap ? "on" : "off", model_.n_layer,
        model_.n_head, model_.n_embd, model_.block_size, config_.vocab_size,
        ParamTable(model_).parameter_count(), plan_.global_batch_size(), model_.block_size);
    return figures;
  }

  CommunicatorOptions communicator_options() const {
    CommunicatorOptions options = config_.train.communicator();
    options.window_elements = window_.elements();
    return options;
  }

  void run_block(Reduction reduction, std::vector<StepResult>& results) {
    TrainingStep<Device> training(replica_, communicator_, group_.control, window_,
                                  {.batch = plan_,
                                   .rank = group_.rank(),
                                   .reduction = reduction,
                                   .bucket_elements = bucket_elements_,
                                   .graph = config_.train.cuda_graph,
                                   .times = !Device::kRunsBesideHost || config_.profile});
    group_.bootstrap.barrier();
    int64_t collected = 0;
    const auto collect = [&] {
      const StepResult result = training.collect();
      if (collected++ >= kWarmUp) {
        results.push_back(result);
      }
    };
    for (int64_t i = 0; i < kWarmUp + config_.steps; ++i) {
      training.enqueue(step_++, 1e-5, {}, [this]() -> const HostBatch& { return batch_; });
      if (training.pending() > TrainingStep<Device>::kAhead) {
        collect();
      }
    }
    while (training.pending() > 0) {
      collect();
    }
  }

  void run_collectives(std::vector<double>& times) {
    group_.bootstrap.barrier();
    for (int64_t i = 0; i < kWarmUp + config_.steps; ++i) {
      const Clock::time_point start = Clock::now();
      communicator_.all_reduce(stream_, {0, window_.elements()}, 0);
      communicator_.finish(stream_);
      stream_.synchronize();
      if (i >= kWarmUp) {
        times.push_back(seconds_since(start));
      }
    }
    set_zero(stream_, communicator_.window());
  }

  template <class Select>
  Quantiles quantiles_of(const std::vector<StepResult>& results, Select select) {
    std::vector<double> values;
    std::transform(results.begin(), results.end(), std::back_inserter(values), select);
    return slowest(group_.bootstrap, quantiles(std::move(values)));
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
