#pragma once

#include <cstdint>
#include <string>

#include "quantiles.h"
#include "trainer/config.h"
#include "trainer/group.h"

namespace lockstep {

struct StepBenchConfig {
  TrainConfig train;
  int64_t vocab_size = 65;
  int64_t steps = 60;
  int64_t rounds = 4;
  int64_t warmup = 5;
  bool profile = false;
  std::string json;
};

/// What was measured of what. Quantiles are of seconds, over the measured steps, of the slowest
/// rank: it is what a run gets.
struct StepFigures {
  std::string title;
  std::string device;
  std::string transport;
  int ranks = 1;
  int64_t rank_batch = 0;     ///< sequences of a step on one rank
  int64_t tokens = 0;         ///< of a step, over all ranks
  int64_t reduced_bytes = 0;  ///< of a step
  int64_t memory_bytes = 0;   ///< what rank 0 took of its device

  Quantiles step;
  Quantiles forward;  ///< this and the next three are 0 when a step's parts were not timed
  Quantiles backward;
  Quantiles waited;  ///< for sums, behind backward
  Quantiles optimizer;
  Quantiles nothing_sent;
  Quantiles in_step;  ///< a step that sums its record alone, so that each rank waits for the others
  Quantiles after;    ///< a step with all sums after backward, where `step` overlaps them; else 0
  Quantiles comm;     ///< the collectives with nothing computed
  std::string profile;  ///< a table of a step's ops; empty unless asked for

  double exposed() const { return step.median - nothing_sent.median; }
  double exposed_without_overlap() const {
    return (after.median > 0 ? after.median : step.median) - nothing_sent.median;
  }
};

/// Measures and reports on the CPU or on this rank's GPU. Collective.
StepFigures measure_on_cpu(const Group& group, const StepBenchConfig& config);
StepFigures measure_on_cuda(const Group& group, const StepBenchConfig& config);

}  // namespace lockstep
