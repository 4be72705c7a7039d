#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "comm/control_plane.h"
#include "core/base/log.h"
#include "core/device/branch.h"
#include "kernels/fingerprint.h"
#include "trainer/replica.h"
#include "trainer/step.h"
#include "trainer/step_options.h"
#include "trainer/step_slot.h"
#include "trainer/update.h"
#include "trainer/window_layout.h"

namespace lockstep {

/// One optimizer step after the other: the gradient of the mean loss over the global batch, summed
/// over ranks, and one AdamW update, of each rank or of its shard. All of a step is enqueued at
/// once, without waiting for any of its results: batch and scalars come from a slot of host memory,
/// loss and norm go back to it. There is one slot more than the device lets the host run ahead, so
/// that the host fills one while the device works on another. Each slot's step is captured once for
/// each schedule into a graph and launched from then on. When gradients are summed may be tried out
/// in the first steps (ScheduleTrial). Collective: all ranks call the same.
template <class Device>
class TrainingStep {
 public:
  using NextBatch = std::function<const HostBatch&()>;

  /// Steps that may be enqueued and not collected when another is enqueued.
  static constexpr int64_t kAhead = Device::kRunsBesideHost ? 1 : 0;

  /// What it refers to must outlive it. With `check` every sum is checked; no graph then.
  TrainingStep(Replica<Device>& replica, Communicator<Device>& communicator, ControlPlane& control,
               const WindowLayout& layout, const StepOptions& options,
               ReduceCheck<Device>* check = nullptr)
      : replica_(&replica),
        communicator_(&communicator),
        control_(&control),
        options_(options),
        layout_(layout),
        record_(layout.record),
        window_(communicator.window()),
        trial_(options.trial && options.has_peers()),
        overlaps_{Overlap<Device>(communicator, layout, options.reduction, options.bucket_elements,
                                  check),
                  Overlap<Device>(communicator, layout, Reduction::kAfterBackward,
                                  options.bucket_elements, check)},
        batch_(options.batch.accumulation_steps,
               options.batch.batch_size * replica.model().config().block_size),
        scalars_(1),
        fingerprint_(kFingerprintPieces) {
    for (Slot& slot : slots_) {
      slot = Slot(batch_.micro_steps(), batch_.micro_tokens(), record_.range().size(),
                  options.template timing<Device>());
    }
  }

  ~TrainingStep() {
    try {
      replica_->stream().synchronize();  // what is pending still uses the slots
    } catch (const Error& error) {
      log_line(error.what());
    }
  }
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;
  TrainingStep(TrainingStep&&) = delete;
  TrainingStep& operator=(TrainingStep&&) = delete;

  /// Enqueues step number `step`, counted from 0; `next_batch` gives this rank's micro-batches of
  /// it. At most kAhead others may be pending.
  void enqueue(int64_t step, double learning_rate, StepRecord::Flags flags,
               const NextBatch& next_batch) {
    LOCKSTEP_CHECK(pending_ <= kAhead, "{} steps are pending", pending_);
    Slot& slot = slots_[static_cast<size_t>(enqueued_ % kSlots)];
    slot.start(step, enqueued_, trial_.schedule(enqueued_));
    control_->set_phase(Phase::kForward);
    fill(slot, learning_rate, flags, next_batch);
    auto& stream = replica_->stream();
    if (fingerprint_due(step)) {
      fingerprint(stream, {fingerprint_.view(), replica_->parameters()});
    }
    // The first step of a kind sizes what its ops need: a capture cannot allocate.
    if (std::exchange(has_run_[slot.schedule], true) && options_.graph) {
      slot.launch(stream, [this, &slot] { run(slot); });
    } else {
      run(slot);
    }
    slot.done.record(stream);
    ++enqueued_;
    ++pending_;
  }

  int64_t pending() const { return pending_; }

  /// Waits for the oldest pending step. Throws the first cause of the group when a sum failed,
  /// RanksDisagreeError when the ranks' parameters were not the same at the last check,
  /// NonFiniteError, on every rank alike, when loss or norm is not finite: with the norm the step
  /// has then updated nothing.
  StepResult collect() {
    LOCKSTEP_CHECK(pending_ > 0, "no step is pending");
    Slot& slot = slots_[static_cast<size_t>((enqueued_ - pending_) % kSlots)];
    slot.done.synchronize();
    --pending_;
    StepResult result;
    result.comm = communicator_->take_times();
    if (options_.template times_wait<Device>()) {
      result.comm.exposed_seconds = slot.marks.wait_seconds();
      result.comm.total_seconds = std::max(result.comm.total_seconds, result.comm.exposed_seconds);
    }
    const Clock::time_point now = Clock::now();
    result.seconds = std::chrono::duration<double>(now - std::max(slot.begin, collected_)).count();
    collected_ = now;
    const std::vector<float> facts = slot.complete(result, record_);
    trial_.add(slot.index, result.seconds);
    result.trial = trial_.decide(slot.index, record_.behind_less_beside(facts));
    check_same_parameters(slot.step, record_.fingerprints(facts));
    check_finite(slot.step, result.loss, result.norm);
    return result;
  }

 private:
  using Slot = StepSlot<Device>;
  static constexpr int64_t kSlots = kAhead + 1;

  void fill(Slot& slot, double learning_rate, StepRecord::Flags flags,
            const NextBatch& next_batch) {
    slot.fill_batch(next_batch);
    const std::vector<float> record = record_.start(flags, trial_.behind_less_beside(slot.index));
    std::copy(record.begin(), record.end(), slot.record.view().begin());
    slot.scalars.view()[0] = replica_->optimizer().scalars(slot.step, learning_rate);
  }

  /// The step's record tells the fingerprint that was taken last, before a step of this rank's.
  bool fingerprint_due(int64_t step) const {
    return options_.check_interval > 0 && options_.has_peers() &&
           (enqueued_ == 0 || step % options_.check_interval == 0);
  }

  /// Everything that a step enqueues.
  void run(Slot& slot) {
    auto& stream = replica_->stream();
    Overlap<Device>& overlap = overlaps_[slot.schedule];
    slot.marks.begin(stream);
    auto& beside = branch_.fork(stream);
    copy_from_host(beside, scalars_.view(), slot.scalars.view().data());
    copy_from_host(beside, window_.subview(record_.range()), slot.record.view().data());
    copy(beside, window_.subview(record_.fingerprint(options_.rank)),
         View<Device, const float>(fingerprint_.view()));
    copy_from_host(stream, batch_.whole(), slot.batch.whole().data());
    branch_.join(stream);
    for (int64_t micro = 0; micro < batch_.micro_steps(); ++micro) {
      control_->set_phase(Phase::kForward);
      const Range loss = record_.loss(micro * options_.batch.world_size + options_.rank);
      replica_->model().forward(stream, batch_.tokens(micro), batch_.targets(micro),
                                options_.gradient_scale(), window_.subview(loss));
      slot.marks.forward(stream, micro);
      control_->set_phase(Phase::kBackward);
      const bool last = micro + 1 == batch_.micro_steps();
      replica_->model().backward(stream, micro > 0, last ? overlap.on_ready(stream) : nullptr);
      slot.marks.backward(stream, micro);
    }
    control_->set_phase(Phase::kAllReduce);
    overlap.finish(stream);
    if (!layout_.sharded()) {
      slot.marks.summed(stream);
    }
    control_->set_phase(Phase::kOptimizer);
    copy_to_host(branch_.fork(stream), slot.summed_record.view().data(),
                 View<Device, const float>(window_.subview(record_.range())));
    update_replica(stream, *replica_, *communicator_, layout_, scalars_.view(),
                   update_part_elements(options_.batch.world_size), overlap.sums_gradients());
    if (layout_.sharded()) {
      slot.marks.summed(stream);  // ranks wait in the update too
    }
    branch_.join(stream);
    copy_to_host(stream, slot.squared_norm.view().data(),
                 replica_->optimizer().squared_gradient_norm());
    slot.marks.end(stream);
  }

  Replica<Device>* replica_;
  Communicator<Device>* communicator_;
  ControlPlane* control_;
  StepOptions options_;
  WindowLayout layout_;
  StepRecord record_;
  View<Device, float> window_;
  ScheduleTrial trial_;
  BySchedule<Overlap<Device>> overlaps_;
  BySchedule<bool> has_run_{};  ///< a step of the schedule
  Branch<Device> branch_;
  StepBatch<Device> batch_;
  Buffer<Device, AdamWStep> scalars_;
  Buffer<Device, float> fingerprint_;  ///< in pieces; zeros when none is taken
  std::array<Slot, static_cast<size_t>(kSlots)> slots_;
  int64_t enqueued_ = 0;
  int64_t pending_ = 0;
  Clock::time_point collected_;  ///< when the last step was
};

}  // namespace lockstep
