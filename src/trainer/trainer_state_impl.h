#pragma once

#include <cmath>
#include <cstring>
#include <optional>

#include "core/base/build_id.h"
#include "core/base/log.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "trainer/continuation.h"
#include "trainer/replica_state.h"
#include "trainer/trainer.h"

// The part of Trainer's body that keeps the run's state: from a checkpoint at start, to checkpoints
// later.

namespace lockstep {

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
  std::optional<CheckpointReader> checkpoint;
  if (group_.is_root()) {
    checkpoint.emplace(*newest_);
    const TrainingState& saved = checkpoint->state();
    check_continues(saved, plan_.identity(config_), checkpoint->path().string());
    if (saved.step > config_.last_step()) {
      throw UsageError("{} is past the last step of this run, {}", checkpoint->path().string(),
                       config_.last_step());
    }
    saved_step_ = saved.step;
    position_ = {saved.step, saved.train_loss, saved.val_loss, saved.best_val_loss};
    log("continuing from {}", checkpoint->path().string());
  }
  const std::string bytes(reinterpret_cast<const char*>(&position_), sizeof(position_));
  const std::vector<std::string> all = group_.bootstrap.all_gather(bytes);
  std::memcpy(&position_, all[0].data(), sizeof(position_));
  const Range summed = plan_.window.summed();
  load_state(replica_, communicator_, summed.end, checkpoint ? &*checkpoint : nullptr);
  // The gaps between gradients must hold zeros again.
  set_zero(replica_.stream(), communicator_.window().subview(summed));
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

/// A step may leave numbers behind that only the next one would trip over. With shards it may throw
/// on one rank alone: the others hear of it where they give their moments.
template <class Device>
void Trainer<Device>::check_state_finite() {
  for (const StateArena<Device>& arena : state_arenas(replica_)) {
    const double norm = replica_.optimizer().norm(replica_.stream(), arena.view);
    if (!std::isfinite(norm)) {
      throw NonFiniteError(
          "step {}: {} are not finite; no checkpoint is written. Lower --learning-rate and "
          "--resume from the last one",
          position_.step, arena.prefix.substr(0, arena.prefix.size() - 1));
    }
  }
}

/// Rank 0 writes; the others give it their shards, and meet it again in the next collective, or at
/// the end of the run.
template <class Device>
void Trainer<Device>::save() {
  group_.control.set_phase(Phase::kSave);
  check_state_finite();
  if (!group_.is_root()) {
    if (plan_.window.sharded()) {
      give_moments(replica_, communicator_);
    }
    return;
  }
  // What is saved already is known here alone: the others give what they have all the same.
  const bool is_new = saved_step_ != position_.step;
  if (is_new || plan_.window.sharded()) {
    const HostState<Device> host(replica_, communicator_);
    if (is_new) {
      store_->save(state(), host.tensors());
      saved_step_ = position_.step;
    }
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

}  // namespace lockstep
