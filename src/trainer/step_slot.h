#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "core/device/buffer.h"
#include "kernels/adamw.h"
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

  StepBatch<Host> batch;
  Buffer<Host, AdamWStep> scalars;
  Buffer<Host, float> record;         ///< what this rank says
  Buffer<Host, float> summed_record;  ///< what came back
  Buffer<Host, double> squared_norm;
  StepMarks<Device> marks;
  typename Device::Graph graph;  ///< of the step, once it was captured
  typename Device::Event done;
  int64_t step = 0;
  Clock::time_point begin;
};

}  // namespace lockstep
