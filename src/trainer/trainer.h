#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "core/base/exit_code.h"
#include "core/checkpoint/checkpoint_store.h"
#include "core/data/data_loader.h"
#include "trainer/config.h"
#include "trainer/evaluation.h"
#include "trainer/group.h"
#include "trainer/replica.h"
#include "trainer/reporter.h"
#include "trainer/run_plan.h"
#include "trainer/training_step.h"

namespace lockstep {

/// A training run on one device per rank: steps, evaluations, checkpoints, and the end. All ranks
/// construct it and call run together. The body is in trainer_impl.h, instantiated once per device.
template <class Device>
class Trainer {
 public:
  using Stream = typename Device::Stream;

  /// Prepares the run that is planned, from the newest checkpoint when asked to. Collective.
  /// `plan`, `stream` and what `group` refers to must outlive it. Throws UsageError, IoError,
  /// CorruptError, or OutOfMemoryError before anything is computed.
  Trainer(const Group& group, const TrainConfig& config, const RunPlan& plan, Stream& stream);

  /// Trains to the end or to a stop. Collective; the code is the same on all ranks.
  ExitCode run();

 private:
  /// What of a run is not in its arenas; plain data, so that rank 0 can hand it on as bytes.
  struct Position {
    int64_t step = 0;  ///< steps done
    double train_loss = 0;
    double val_loss = 0;
    double best_val_loss = 0;
  };

  void open_store();
  void resume();
  void enqueue_step();
  void collect_step();
  bool pauses_after(int64_t step) const;
  void evaluate();
  static bool due(int64_t interval, int64_t step) { return interval > 0 && step % interval == 0; }
  void save_periodically();
  void save();
  void check_state_finite();
  ExitCode stop();
  ExitCode finish();
  TrainingState state() const;

  Group group_;
  TrainConfig config_;
  const RunPlan& plan_;
  int64_t memory_bytes_;
  Communicator<Device> communicator_;
  Replica<Device> replica_;
  std::unique_ptr<ReduceCheck<Device>> reduce_check_;  ///< with --verify-reduce
  TrainingStep<Device> training_;
  Evaluation<Device> evaluation_;
  Position position_;                            ///< behind the last step that was collected
  int64_t enqueued_ = 0;                         ///< steps enqueued, the collected ones included
  std::optional<CheckpointStore> store_;         ///< rank 0 only
  std::optional<std::filesystem::path> newest_;  ///< the checkpoint found at start; rank 0 only
  std::optional<DataLoader> loader_;
  std::optional<Reporter> reporter_;  ///< rank 0 only
  bool stop_asked_ = false;           ///< on any rank
  int64_t evaluated_step_ = -1;
  int64_t saved_step_ = -1;       ///< rank 0 only
  bool save_failed_ = false;      ///< here
  bool any_save_failed_ = false;  ///< on any rank
};

/// Runs on the CPU or on this rank's GPU. Collective.
ExitCode train_on_cpu(const Group& group, const TrainConfig& config, const RunPlan& plan);
ExitCode train_on_cuda(const Group& group, const TrainConfig& config, const RunPlan& plan);
/// Whether this build and machine can.
bool cuda_available();

}  // namespace lockstep
