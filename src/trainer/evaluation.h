#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "comm/communicator.h"
#include "comm/control_plane.h"
#include "core/data/data_loader.h"
#include "core/data/sample_order.h"
#include "core/data/token_shard.h"
#include "core/device/buffer.h"
#include "trainer/replica.h"

namespace lockstep {

/// The windows of the validation split that an evaluation sees: `batches` times `batch_size`
/// sequences. Independent of the number of ranks, so that the value is too.
struct EvaluationPlan {
  int64_t batches = 0;
  int64_t batch_size = 0;
  int64_t block_size = 0;
  int64_t vocabulary = 0;
};

/// An evaluation batch is a global batch, but at most this many tokens (and at least one sequence):
/// more gains no speed and costs activations.
inline constexpr int64_t kEvaluationTokens = 4096;

/// What `eval_iters` may be: the number of an evaluation's sequences squared stays within 64 bits.
inline constexpr int64_t kMostEvaluationBatches = 100'000;

inline EvaluationPlan plan_evaluation(int64_t eval_iters, int64_t global_batch_size,
                                      const GptConfig& model) {
  const int64_t most = std::max<int64_t>(1, kEvaluationTokens / model.block_size);
  return {eval_iters, std::min(global_batch_size, most), model.block_size, model.vocab_size};
}

/// Batch number `index` of an evaluation.
HostBatch evaluation_batch(const TokenShard& shard, const EvaluationPlan& plan, int64_t index);

/// Mean validation loss of a replica. Collective.
template <class Device>
class Evaluation {
 public:
  /// `slots`, one for each batch, are elements of the communicator's window. What it refers to must
  /// outlive it.
  Evaluation(Replica<Device>& replica, Communicator<Device>& communicator, ControlPlane& control,
             const TokenShard& shard, const EvaluationPlan& plan, Range slots, bool graph)
      : replica_(&replica),
        communicator_(&communicator),
        control_(&control),
        shard_(&shard),
        plan_(plan),
        slots_(slots),
        graph_(graph),
        batch_(2 * plan.batch_size * plan.block_size),
        loss_(1),
        losses_(plan.batches) {
    for (Upload& upload : uploads_) {
      upload.batch = Buffer<Host, int32_t>(batch_.size());
    }
  }

  /// Batch i is computed by rank i mod world size into slot i; the slots are summed over ranks
  /// exactly and then added in order, so the value has the same bits on all ranks and for any
  /// number of them. Waits for it. Throws the first cause of the group when the sum failed.
  double run(int rank, int world_size) {
    auto& stream = replica_->stream();
    const View<Device, float> window = communicator_->window().subview(slots_);
    set_zero(stream, window);
    for (int64_t i = rank; i < plan_.batches; i += world_size) {
      control_->set_phase(Phase::kEvaluate);
      evaluate(evaluation_batch(*shard_, plan_, i));
      copy(stream, window.subview({i, i + 1}), View<Device, const float>(loss_.view()));
    }
    communicator_->all_reduce(stream, slots_, 0);
    communicator_->finish(stream);
    copy_to_host(stream, losses_.view().data(), View<Device, const float>(window));
    stream.synchronize();
    communicator_->take_times();  // no step's cost
    double total = 0;
    for (const float loss : losses_.view()) {
      total += static_cast<double>(loss);
    }
    return total / static_cast<double>(plan_.batches);
  }

 private:
  using Host = typename Device::Host;

  /// A batch's way into the device: the host fills one while the device works on another.
  struct Upload {
    Buffer<Host, int32_t> batch;  ///< tokens, then targets
    typename Device::Graph graph;
    typename Device::Event done;
  };

  /// Enqueues one batch's loss into `loss_`.
  void evaluate(const HostBatch& batch) {
    auto& stream = replica_->stream();
    Upload& upload = uploads_[static_cast<size_t>(enqueued_ % std::ssize(uploads_))];
    upload.done.synchronize();
    int32_t* const targets =
        std::copy(batch.tokens.begin(), batch.tokens.end(), upload.batch.view().data());
    std::copy(batch.targets.begin(), batch.targets.end(), targets);
    const auto work = [this, &upload] {
      auto& same_stream = replica_->stream();
      const int64_t half = batch_.size() / 2;
      copy_from_host(same_stream, batch_.view(), upload.batch.view().data());
      replica_->model().evaluate(same_stream, batch_.view().subview({0, half}),
                                 batch_.view().subview({half, 2 * half}), loss_.view());
    };
    // The first one sizes what the ops need: a capture cannot allocate.
    if (!graph_ || enqueued_ == 0) {
      work();
    } else {
      if (upload.graph.empty()) {
        upload.graph = typename Device::Graph(stream, work);
      }
      upload.graph.launch(stream);
    }
    upload.done.record(stream);
    ++enqueued_;
  }

  Replica<Device>* replica_;
  Communicator<Device>* communicator_;
  ControlPlane* control_;
  const TokenShard* shard_;
  EvaluationPlan plan_;
  Range slots_;
  bool graph_;
  Buffer<Device, int32_t> batch_;
  Buffer<Device, float> loss_;
  Buffer<Host, float> losses_;
  std::array<Upload, Device::kRunsBesideHost ? 2 : 1> uploads_;
  int64_t enqueued_ = 0;
};

}  // namespace lockstep
