#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/control_plane.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/data/data_loader.h"
#include "core/device/branch.h"
#include "core/device/buffer.h"
#include "kernels/adamw.h"
#include "kernels/fingerprint.h"
#include "trainer/overlap.h"
#include "trainer/replica.h"
#include "trainer/step.h"
#include "trainer/window_layout.h"

namespace lockstep {

struct StepOptions {
  BatchPlan batch;
  int rank = 0;
  Reduction reduction = Reduction::kOverlapped;
  int64_t bucket_elements = 1;
  int64_t check_interval = 0;  ///< steps between fingerprints of the parameters; 0: none
  bool graph = true;           ///< launch the step as a graph, where the device has them
  bool times = false;          ///< fill StepResult::times
};

/// One optimizer step after the other: the gradient of the mean loss over the global batch, summed
/// over ranks, and one AdamW update. All of a step is enqueued at once, without waiting for any of
/// its results: batch and scalars come from a slot of host memory, loss and norm go back to it.
/// There is one slot more than the device lets the host run ahead, so that the host fills one while
/// the device works on another. Each slot's step is captured once into a graph and launched from
/// then on. Collective: all ranks call the same.
template <class Device>
class TrainingStep {
 public:
  using Stream = typename Device::Stream;
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
        record_(layout.record),
        window_(communicator.window()),
        overlap_(communicator, layout.gradients, layout.record.range(), options.reduction,
                 options.bucket_elements, check),
        micro_tokens_(options.batch.batch_size * replica.model().config().block_size),
        batch_(2 * options.batch.accumulation_steps * micro_tokens_),
        scalars_(1),
        fingerprint_(kFingerprintPieces) {
    for (Slot& slot : slots_) {
      slot.batch = Buffer<Host, int32_t>(batch_.size());
      slot.scalars = Buffer<Host, AdamWStep>(1);
      slot.record = Buffer<Host, float>(record_.range().size());
      slot.summed_record = Buffer<Host, float>(record_.range().size());
      slot.squared_norm = Buffer<Host, double>(1);
      slot.marks.resize(options.times ? static_cast<size_t>(marks()) : 0);
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
    slot.step = step;
    slot.begin = Clock::now();
    control_->set_phase(Phase::kForward);
    fill(slot, learning_rate, flags, next_batch);
    auto& stream = replica_->stream();
    if (fingerprint_due(step)) {
      fingerprint(stream, {fingerprint_.view(), replica_->parameters()});
    }
    // The first step sizes what the ops need: a capture cannot allocate.
    if (!options_.graph || enqueued_ == 0) {
      run(slot);
    } else {
      if (slot.graph.empty()) {
        slot.graph = Graph(stream, [this, &slot] { run(slot); });
      }
      slot.graph.launch(stream);
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
    if (waits_are_marked()) {
      result.comm.exposed_seconds = slot.summed.seconds_since(slot.computed);
      result.comm.total_seconds = std::max(result.comm.total_seconds, result.comm.exposed_seconds);
    }
    const Clock::time_point now = Clock::now();
    result.seconds = std::chrono::duration<double>(now - std::max(slot.begin, collected_)).count();
    collected_ = now;
    const auto sums = slot.summed_record.view();
    const std::vector<float> facts(sums.begin(), sums.end());
    result.loss = record_.mean_loss(facts);
    result.flags = record_.flags(facts);
    result.norm = std::sqrt(slot.squared_norm.view()[0]);
    result.times = times_of(slot);
    check_same_parameters(slot.step, record_.fingerprints(facts));
    check_finite(slot.step, result.loss, result.norm);
    return result;
  }

 private:
  using Host = typename Device::Host;
  using Event = typename Device::Event;
  using Graph = typename Device::Graph;
  static constexpr int64_t kSlots = kAhead + 1;

  /// A step's way in and out of the device.
  struct Slot {
    Buffer<Host, int32_t> batch;  ///< tokens of all micro-steps, then their targets
    Buffer<Host, AdamWStep> scalars;
    Buffer<Host, float> record;         ///< what this rank says
    Buffer<Host, float> summed_record;  ///< what came back
    Buffer<Host, double> squared_norm;
    Graph graph;
    Event done;
    std::vector<Event> marks;  ///< see marks(); empty when nobody asks
    Event computed;            ///< backward is, and the sums are waited for
    Event summed;
    int64_t step = 0;
    Clock::time_point begin;
  };

  void fill(Slot& slot, double learning_rate, StepRecord::Flags flags,
            const NextBatch& next_batch) {
    int32_t* tokens = slot.batch.view().data();
    int32_t* targets = tokens + options_.batch.accumulation_steps * micro_tokens_;
    for (int64_t micro = 0; micro < options_.batch.accumulation_steps; ++micro) {
      const HostBatch& batch = next_batch();
      LOCKSTEP_CHECK(static_cast<int64_t>(batch.tokens.size()) == micro_tokens_,
                     "a micro-batch of {} tokens, not {}", batch.tokens.size(), micro_tokens_);
      tokens = std::copy(batch.tokens.begin(), batch.tokens.end(), tokens);
      targets = std::copy(batch.targets.begin(), batch.targets.end(), targets);
    }
    const std::vector<float> record = record_.start(flags);
    std::copy(record.begin(), record.end(), slot.record.view().begin());
    slot.scalars.view()[0] = replica_->optimizer().scalars(slot.step, learning_rate);
  }

  /// Tokens or, behind all of them, targets of a micro-step.
  View<Device, const int32_t> batch_part(int64_t index) {
    return batch_.view().subview({index * micro_tokens_, (index + 1) * micro_tokens_});
  }

  /// The step's record tells the fingerprint that was taken last, before a step of this rank's.
  bool fingerprint_due(int64_t step) const {
    return options_.check_interval > 0 && options_.batch.world_size > 1 &&
           (enqueued_ == 0 || step % options_.check_interval == 0);
  }

  /// Everything that a step enqueues.
  void run(Slot& slot) {
    auto& stream = replica_->stream();
    size_t marked = 0;
    const auto mark = [&] {
      if (marked < slot.marks.size()) {
        slot.marks[marked++].mark(stream);
      }
    };
    mark();
    auto& beside = branch_.fork(stream);
    copy_from_host(beside, scalars_.view(), slot.scalars.view().data());
    copy_from_host(beside, window_.subview(record_.range()), slot.record.view().data());
    copy(beside, window_.subview(record_.fingerprint(options_.rank)),
         View<Device, const float>(fingerprint_.view()));
    copy_from_host(stream, batch_.view(), slot.batch.view().data());
    branch_.join(stream);
    const int64_t micro_steps = options_.batch.accumulation_steps;
    for (int64_t micro = 0; micro < micro_steps; ++micro) {
      control_->set_phase(Phase::kForward);
      const Range loss = record_.loss(micro * options_.batch.world_size + options_.rank);
      replica_->model().forward(stream, batch_part(micro), batch_part(micro_steps + micro),
                                gradient_scale(), window_.subview(loss));
      mark();
      control_->set_phase(Phase::kBackward);
      const bool last = micro + 1 == micro_steps;
      replica_->model().backward(stream, micro > 0, last ? overlap_.on_ready(stream) : nullptr);
      mark();
    }
    control_->set_phase(Phase::kAllReduce);
    if (waits_are_marked()) {
      slot.computed.mark(stream);
    }
    overlap_.finish(stream);
    if (waits_are_marked()) {
      slot.summed.mark(stream);
    }
    mark();
    control_->set_phase(Phase::kOptimizer);
    copy_to_host(branch_.fork(stream), slot.summed_record.view().data(),
                 View<Device, const float>(window_.subview(record_.range())));
    replica_->optimizer().step(stream, scalars_.view(), replica_->parameters(),
                               replica_->gradients());
    branch_.join(stream);
    copy_to_host(stream, slot.squared_norm.view().data(),
                 replica_->optimizer().squared_gradient_norm());
    mark();
  }

  /// Where the host does not wait for the sums itself, the device's clock tells how long it did.
  bool waits_are_marked() const { return Device::kRunsBesideHost && options_.batch.world_size > 1; }

  float gradient_scale() const {
    return static_cast<float>(1.0 / static_cast<double>(options_.batch.micro_batches()));
  }

  /// Marks of a step: its begin, behind each forward and each backward, behind the sums, its end.
  int64_t marks() const { return 2 * options_.batch.accumulation_steps + 3; }

  StepTimes times_of(Slot& slot) {
    StepTimes times;
    if (slot.marks.empty()) {
      return times;
    }
    const auto lap = [&](size_t mark) {
      return slot.marks[mark].seconds_since(slot.marks[mark - 1]);
    };
    size_t mark = 1;
    for (int64_t micro = 0; micro < options_.batch.accumulation_steps; ++micro) {
      times.forward += lap(mark++);
      times.backward += lap(mark++);
    }
    times.exposed = lap(mark++);
    times.optimizer = lap(mark);
    return times;
  }

  Replica<Device>* replica_;
  Communicator<Device>* communicator_;
  ControlPlane* control_;
  StepOptions options_;
  StepRecord record_;
  View<Device, float> window_;
  Overlap<Device> overlap_;
  Branch<Device> branch_;
  int64_t micro_tokens_;  ///< tokens of a micro-batch
  Buffer<Device, int32_t> batch_;
  Buffer<Device, AdamWStep> scalars_;
  Buffer<Device, float> fingerprint_;  ///< in pieces; zeros when none is taken
  std::array<Slot, static_cast<size_t>(kSlots)> slots_;
  int64_t enqueued_ = 0;
  int64_t pending_ = 0;
  Clock::time_point collected_;  ///< when the last step was
};

}  // namespace lockstep
