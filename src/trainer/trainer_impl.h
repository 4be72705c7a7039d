#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "comm/agreement.h"
#include "core/base/build_id.h"
#include "core/base/log.h"
#include "trainer/bucket_choice.h"
#include "trainer/device_facts.h"
#include "trainer/memory_plan.h"
#include "trainer/replica_state.h"
#include "trainer/sample_text.h"
#include "trainer/signals.h"
#include "trainer/trainer.h"

namespace lockstep {

inline CommunicatorOptions communicator_options(const TrainConfig& config, const RunPlan& plan) {
  CommunicatorOptions options = config.communicator();
  options.window_elements = plan.window.elements();
  return options;
}

/// Of the run's buckets; what was measured for it is printed. Without overlap there are none.
template <class Device>
int64_t bucket_elements(const Group& group, const TrainConfig& config,
                        typename Device::Stream& stream, Communicator<Device>& communicator) {
  if (!config.overlap) {
    return 1;
  }
  const BucketSize size =
      bucket_size<Device>(config.bucket_elements(), group.bootstrap, stream, communicator);
  if (group.is_root() && size.cost) {
    print_buckets(*size.cost, size.elements);
  }
  return size.elements;
}

inline StepOptions step_options(const Group& group, const TrainConfig& config, const RunPlan& plan,
                                int64_t bucket_elements) {
  return {.batch = plan.batch,
          .rank = group.rank(),
          .reduction = config.overlap ? Reduction::kOverlapped : Reduction::kAfterBackward,
          .bucket_elements = bucket_elements,
          .check_interval = config.check_interval,
          .graph = config.cuda_graph && !config.verify_reduce};
}

/// With --verify-reduce and several ranks.
template <class Device>
std::unique_ptr<ReduceCheck<Device>> make_reduce_check(const Group& group,
                                                       const TrainConfig& config,
                                                       const CommunicatorOptions& options,
                                                       const std::string& transport) {
  if (!config.verify_reduce || group.world_size() == 1) {
    return nullptr;
  }
  return std::make_unique<ReduceCheck<Device>>(group.bootstrap, group.peers, group.control, options,
                                               transport);
}

template <class Device>
Trainer<Device>::Trainer(const Group& group, const TrainConfig& config, const RunPlan& plan,
                         Stream& stream)
    : group_(group),
      config_(config),
      plan_(plan),
      memory_bytes_(check_memory(plan_.shape(), memory_supply(stream, group))),
      communicator_(group.bootstrap, group.peers, group.control,
                    communicator_options(config, plan_)),
      replica_(stream, plan_.model, config.adamw(), static_cast<uint64_t>(config.seed),
               std::max(plan_.batch.batch_size, plan_.evaluation.batch_size),
               communicator_.window().subview(plan_.window.gradients)),
      reduce_check_(make_reduce_check<Device>(group, config, communicator_options(config, plan_),
                                              communicator_.transport_name())),
      training_(replica_, communicator_, group.control, plan_.window,
                step_options(group, config, plan_,
                             bucket_elements<Device>(group, config, stream, communicator_)),
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

template <class Device>
void Trainer<Device>::open_store() {
  store_.emplace(config_.out_dir, config_.keep_checkpoints);
  newest_ = store_->newest();
  if (newest_ && !config_.resume) {
    throw UsageError(
        "--out-dir {} already holds {}: give --resume to continue it, or another --out-dir to "
        "start anew",
        config_.out_dir, newest_->filename().string());
  }
  if (!newest_ && config_.resume) {
    throw UsageError("--resume: --out-dir {} holds no complete checkpoint; start without --resume",
                     config_.out_dir);
  }
}

/// Rank 0 reads the checkpoint and hands it to the others, whose hosts need not see the folder.
template <class Device>
void Trainer<Device>::resume() {
  HostState<Device> host(replica_);
  if (group_.is_root()) {
    const CheckpointReader checkpoint(*newest_);
    const TrainingState& saved = checkpoint.state();
    check_continues(saved, plan_.identity(config_), checkpoint.path().string());
    if (saved.step > config_.last_step()) {
      throw UsageError("{} is past the last step of this run, {}", checkpoint.path().string(),
                       config_.last_step());
    }
    host.read(checkpoint);
    saved_step_ = saved.step;
    position_ = {saved.step, saved.train_loss, saved.val_loss, saved.best_val_loss};
    log("continuing from {}", checkpoint.path().string());
  }
  const std::string bytes(reinterpret_cast<const char*>(&position_), sizeof(position_));
  const std::vector<std::string> all = group_.bootstrap.all_gather(bytes);
  std::memcpy(&position_, all[0].data(), sizeof(position_));
  for (const auto& [prefix, arena] : host.arenas()) {
    broadcast_from_root(replica_.stream(), communicator_, group_.is_root(), arena);
  }
  host.upload();
  // The gaps between gradients must hold zeros again.
  set_zero(replica_.stream(), communicator_.window());
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
TrainingState Trainer<Device>::state() const {
  TrainingState state;
  state.model = plan_.model;
  state.step = position_.step;
  state.seed = static_cast<uint64_t>(config_.seed);
  state.global_batch = plan_.batch.global_batch_size();
  state.samples_seen = position_.step * state.global_batch;
  state.train_loss = position_.train_loss;
  state.val_loss = position_.val_loss;
  state.best_val_loss = position_.best_val_loss;
  state.world_size = group_.world_size();
  state.device = Device::kName;
  state.precision = config_.precision;
  state.build_id = build_id();
  state.dataset_fingerprint = plan_.dataset.fingerprint();
  if (plan_.dataset.tokenizer()) {
    state.tokenizer_json = plan_.dataset.tokenizer()->to_json();
  }
  state.options = config_.options();
  return state;
}

/// A step may leave numbers behind that only the next one would trip over.
template <class Device>
void Trainer<Device>::check_state_finite() {
  for (auto& [prefix, view] : state_arenas(replica_)) {
    const double norm = replica_.optimizer().norm(replica_.stream(), view);
    if (!std::isfinite(norm)) {
      throw NonFiniteError(
          "step {}: {} are not finite; no checkpoint is written. Lower --learning-rate and "
          "--resume from the last one",
          position_.step, prefix.substr(0, prefix.size() - 1));
    }
  }
}

/// Rank 0 writes; the others meet it again in the next collective, or at the end of the run.
template <class Device>
void Trainer<Device>::save() {
  group_.control.set_phase(Phase::kSave);
  check_state_finite();
  if (store_ && saved_step_ != position_.step) {
    const HostState<Device> host(replica_);
    store_->save(state(), host.tensors());
    saved_step_ = position_.step;
  }
}

template <class Device>
void Trainer<Device>::save_periodically() {
  try {
    save();
  } catch (const IoError& error) {
    save_failed_ = true;
    log("{}; the run goes on without this checkpoint", error.what());
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
      print_plan(group, config, plan, memory_supply(*stream, group),
                 predicted_step(*stream, plan.shape()));
      return;
    }
    trainer.emplace(group, config, plan, *stream);
    code = trainer->run();
  });
  return code;
}

}  // namespace lockstep
