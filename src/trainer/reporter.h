#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "core/base/clock.h"
#include "trainer/bucket_choice.h"
#include "trainer/config.h"
#include "trainer/device_facts.h"
#include "trainer/event_writer.h"
#include "trainer/group.h"
#include "trainer/memory_plan.h"
#include "trainer/metrics_file.h"
#include "trainer/progress.h"
#include "trainer/run_plan.h"
#include "trainer/step.h"
#include "trainer/step_metrics.h"

namespace lockstep {

/// Tells the person (standard output) and the metric files how a run goes. On rank 0 only.
class Reporter {
 public:
  Reporter(const TrainConfig& config, const RunPlan& plan, int64_t first_step);

  /// A step is done, `val_loss` measured after it if it was.
  void step_done(int64_t step, const StepResult& result, double learning_rate,
                 std::optional<double> val_loss);
  /// What the trained model writes.
  void sample(const std::string& text) const;
  /// The last line: what the run came to.
  void summary(int64_t step, double val_loss, double best_val_loss) const;

 private:
  void draw(const StepMetrics& metrics);

  struct Sums {
    int64_t steps = 0;
    double step_seconds = 0;
    double comm_seconds = 0;
    double exposed_seconds = 0;
  };

  int ranks_;
  int64_t max_steps_;
  int64_t log_interval_;
  int64_t first_step_;
  int64_t tokens_per_step_;
  Progress progress_;
  MetricsFile metrics_;
  std::optional<EventWriter> curves_;
  Clock::time_point start_ = Clock::now();
  Sums since_line_;
};

/// Who takes part: one line per rank on rank 0's standard output. Collective.
void print_ranks(const Group& group, const DevicePlace& place, const std::string& transport);

/// The size of buckets that was chosen, and for what cost of sums.
void print_buckets(const SumCost& cost, int64_t elements);

/// What is trained on what, in a few lines.
void print_run(const TrainConfig& config, const RunPlan& plan, int64_t memory_bytes);

/// The same with memory by class, what would fit, and the line about a step's time. On rank 0 only;
/// with --plan nothing else happens.
void print_plan(const Group& group, const TrainConfig& config, const RunPlan& plan,
                const MemorySupply& supply, const std::string& step_time);

}  // namespace lockstep
