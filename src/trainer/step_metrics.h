#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

/// What one step tells a person.
struct StepMetrics {
  int64_t step = 0;       ///< steps done, this one included
  int64_t max_steps = 0;  ///< of the run
  int ranks = 1;
  double loss = 0;
  std::optional<double> val_loss;  ///< when it was measured after this step
  double norm = 0;
  double learning_rate = 0;
  double milliseconds = 0;  ///< of the step, evaluation and saving left out
  double tokens_per_second = 0;
  double comm_milliseconds = 0;     ///< the collectives were at work
  double exposed_milliseconds = 0;  ///< and computing waited for them
  double seconds_left = 0;          ///< until TrainConfig::last_step; negative: not known yet

  double hidden_milliseconds() const { return comm_milliseconds - exposed_milliseconds; }
};

/// The step line: llm.c's, with progress and, of several ranks, what communication costs.
std::string step_line(const StepMetrics& metrics);

/// The same as one line of JSON; numbers read back to the same bits.
std::string step_json(const StepMetrics& metrics);

/// "1:02:03" or "02:03".
std::string clock_text(double seconds);

}  // namespace lockstep
