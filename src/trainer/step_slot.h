#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "core/device/buffer.h"
#include "kernels/adamw.h"
#include "trainer/schedule_trial.h"
#include "trainer/step.h"
#include "trainer/step_batch.h"
#include "trainer/step_marks.h"

namespace lockstep {

/// A step's way in and out of the device, in memory of the host that the device reads and writes at
/// its own time.
template <class Device>
struct StepSlot {
  using Host = typename Device::Host;

  StepSlot() = default;
  StepSlot(int64_t micro_steps, int64_t micro_tokens, int64_t record_elements, StepTiming timing)
      : batch(micro_steps, micro_tokens),
        scalars(1),
        record(record_elements),
        summed_record(record_elements),
        squared_norm(1),
        marks(timing, micro_steps) {}

  /// Step `number` begins, behind `earlier` ones of this process.
  void start(int64_t number, int64_t earlier, Schedule in_schedule) {
    step = number;
    index = earlier;
    schedule = in_schedule;
    begin = Clock::now();
  }

  /// `next_batch` is called once for each micro-step.
  void fill_batch(const std::function<const HostBatch&()>& next_batch) {
    for (int64_t micro = 0; micro < batch.micro_steps(); ++micro) {
      const HostBatch& next = next_batch();
      LOCKSTEP_CHECK(static_cast<int64_t>(next.tokens.size()) == batch.micro_tokens(),
                     "a micro-batch of {} tokens, not {}", next.tokens.size(),
                     batch.micro_tokens());
      std::copy(next.tokens.begin(), next.tokens.end(), batch.tokens(micro).data());
      std::copy(next.targets.begin(), next.targets.end(), batch.targets(micro).data());
    }
  }

  /// Launches `work`, which is the same at each call in a schedule, as a graph.
  void launch(typename Device::Stream& stream, const std::function<void()>& work) {
    typename Device::Graph& graph = graphs[schedule];
    if (graph.empty()) {
      graph = typename Device::Graph(stream, work);
    }
    graph.launch(stream);
  }

  /// Once the device is done: puts into `result` what came back, and returns the summed record.
  std::vector<float> complete(StepResult& result, const StepRecord& layout) {
    const auto sums = summed_record.view();
    std::vector<float> facts(sums.begin(), sums.end());
    result.loss = layout.mean_loss(facts);
    result.flags = layout.flags(facts);
    result.norm = std::sqrt(squared_norm.view()[0]);
    result.times = marks.times();
    return facts;
  }

  StepBatch<Host> batch;
  Buffer<Host, AdamWStep> scalars;
  Buffer<Host, float> record;         ///< what this rank says
  Buffer<Host, float> summed_record;  ///< what came back
  Buffer<Host, double> squared_norm;
  StepMarks<Device> marks;
  BySchedule<typename Device::Graph> graphs;  ///< of the step, once captured
  typename Device::Event done;
  int64_t step = 0;
  int64_t index = 0;  ///< of the step, since the process began
  Schedule schedule = Schedule::kBeside;
  Clock::time_point begin;
};

}  // namespace lockstep
