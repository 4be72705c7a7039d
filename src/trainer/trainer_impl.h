#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "comm/agreement.h"
#include "comm/run_under.h"
#include "core/base/log.h"
#include "trainer/device_facts.h"
#include "trainer/memory_plan.h"
#include "trainer/sample_text.h"
#include "trainer/signals.h"
#include "trainer/trainer.h"
#include "trainer/trainer_setup.h"
#include "trainer/trainer_state_impl.h"

namespace lockstep {

template <class Device>
Trainer<Device>::Trainer(const Group& group, const TrainConfig& config, const RunPlan& plan,
                         Stream& stream)
    : group_(group),
      config_(config),
      plan_(plan),
      memory_bytes_(check_memory(plan_.shape(), memory_supply(stream, group, config))),
      communicator_(group.bootstrap, group.peers, group.control,
                    config.communicator(plan_.window.elements())),
      replica_(stream, plan_.model, config.adamw(), static_cast<uint64_t>(config.seed),
               std::max(plan_.batch.batch_size, plan_.evaluation.batch_size),
               communicator_.window().subview(plan_.window.gradients),
               replica_shard(group, communicator_, plan_.window)),
      reduce_check_(make_reduce_check<Device>(group, config,
                                              config.communicator(plan_.window.summed().size()),
                                              plan_.window, communicator_.transport_name())),
      training_(
          replica_, communicator_, group.control, plan_.window,
          step_options(group, config, plan_,
                       bucket_elements<Device>(group, config, stream, communicator_, plan_.window)),
          reduce_check_.get()),
      evaluation_(replica_, communicator_, group.control, plan_.dataset.val(), plan_.evaluation,
                  plan_.window.evaluation, config.cuda_graph) {
  group_.control.set_phase(Phase::kLoad);
  position_.val_loss = std::numeric_limits<double>::quiet_NaN();
  position_.best_val_loss = std::numeric_limits<double>::quiet_NaN();
  print_ranks(group_, place_of(stream), communicator_.transport_name());
  if (group_.is_root()) {
    print_run(config_, plan_, memory_bytes_);
    open_store();
  }
  if (config_.resume) {
    resume();
  }
  enqueued_ = position_.step;
  const LoaderShape shape{group_.rank(),          group_.world_size(),
                          plan_.batch.batch_size, plan_.batch.accumulation_steps,
                          config_.block_size,     plan_.model.vocab_size};
  loader_.emplace(plan_.dataset.train(), static_cast<uint64_t>(config_.seed), shape,
                  position_.step);
  if (group_.is_root()) {
    reporter_.emplace(config_, plan_, position_.step);
  }
}

/// Where the run looks at its state: nothing may be under way on the device then.
template <class Device>
bool Trainer<Device>::pauses_after(int64_t step) const {
  return due(config_.eval_interval, step) || due(config_.checkpoint_interval, step) ||
         step == config_.last_step() || step == config_.max_iters;
}

template <class Device>
ExitCode Trainer<Device>::run() {
  while (position_.step < config_.last_step()) {
    enqueue_step();
    const bool pauses = pauses_after(enqueued_);
    while (training_.pending() > (pauses || stop_asked_ ? 0 : TrainingStep<Device>::kAhead)) {
      collect_step();
    }
    if (position_.step == config_.last_step()) {
      break;
    }
    if (stop_asked_) {
      return stop();
    }
    if (pauses && due(config_.checkpoint_interval, position_.step)) {
      save_periodically();
    }
  }
  return position_.step == config_.max_iters ? finish() : stop();
}

template <class Device>
void Trainer<Device>::enqueue_step() {
  group_.control.set_step(enqueued_ + 1);
  training_.enqueue(enqueued_, config_.lr_schedule().at(enqueued_),
                    {stop_signal() != 0, save_failed_},
                    [this]() -> const HostBatch& { return loader_->next(); });
  ++enqueued_;
}

template <class Device>
void Trainer<Device>::collect_step() {
  const StepResult result = training_.collect();
  const double learning_rate = config_.lr_schedule().at(position_.step);
  ++position_.step;
  position_.train_loss = result.loss;
  stop_asked_ = stop_asked_ || result.flags.stop;
  any_save_failed_ = any_save_failed_ || result.flags.save_failed;
  if (due(config_.eval_interval, position_.step) || position_.step == config_.max_iters) {
    evaluate();
  }
  if (reporter_) {
    const bool fresh = evaluated_step_ == position_.step;
    reporter_->step_done(position_.step, result, learning_rate,
                         fresh ? std::optional(position_.val_loss) : std::nullopt);
  }
}

template <class Device>
void Trainer<Device>::evaluate() {
  position_.val_loss = evaluation_.run(group_.rank(), group_.world_size());
  if (!std::isfinite(position_.val_loss)) {
    throw NonFiniteError("step {}: the validation loss is {}; no checkpoint was written after this",
                         position_.step, position_.val_loss);
  }
  evaluated_step_ = position_.step;
  if (!(position_.best_val_loss <= position_.val_loss)) {
    position_.best_val_loss = position_.val_loss;
  }
}

template <class Device>
ExitCode Trainer<Device>::stop() {
  save();
  if (group_.is_root()) {
    log("stopped after step {}; continue with --resume", position_.step);
  }
  if (stop_asked_) {
    return ExitCode::kInterrupted;
  }
  return any_save_failed_ ? ExitCode::kIo : ExitCode::kDone;
}

template <class Device>
ExitCode Trainer<Device>::finish() {
  if (evaluated_step_ != position_.step) {
    evaluate();  // a finished run that was started again
  }
  save();
  if (group_.is_root()) {
    group_.control.set_phase(Phase::kShutdown);
    reporter_->summary(position_.step, position_.val_loss, position_.best_val_loss);
    if (config_.sample_tokens > 0 && plan_.dataset.tokenizer()) {
      reporter_->sample(sample_text<Device>(replica_.stream(), plan_.model, replica_.parameters(),
                                            *plan_.dataset.tokenizer(), config_.prompt,
                                            config_.sample_tokens, SamplingOptions{}));
    }
    if (any_save_failed_) {
      log("a checkpoint could not be written during the run (see above); the last one is complete");
    }
  }
  return any_save_failed_ ? ExitCode::kIo : ExitCode::kDone;
}

/// A whole run, or with --plan what it would take, on the device that `make_stream` prepares. The
/// trainer outlives the report of an error: while its connections stand, the other ranks learn the
/// cause and not the consequence.
template <class Device>
ExitCode train_on(const Group& group, const TrainConfig& config, const RunPlan& plan,
                  const std::function<typename Device::Stream()>& make_stream) {
  std::optional<typename Device::Stream> stream;
  std::optional<Trainer<Device>> trainer;
  ExitCode code = ExitCode::kDone;
  run_under(group.control, [&] {
    stream.emplace(make_stream());
    check_agreement(group.bootstrap, arithmetic(*stream));
    if (config.plan) {
      print_plan(group, config, plan, memory_supply(*stream, group, config),
                 predicted_step(*stream, plan.shape()));
      return;
    }
    trainer.emplace(group, config, plan, *stream);
    code = trainer->run();
  });
  return code;
}

}  // namespace lockstep
