#pragma once

#include <cstdint>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/view.h"
#include "core/model/param_table.h"
#include "kernels/adamw.h"

namespace lockstep {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double grad_clip = 1.0;  ///< clips the global norm; 0 = off
};

/// AdamW over a parameter arena: owns both moments, lays decay on the tensors whose spec asks for
/// it.
template <class Device>
class Optimizer {
 public:
  using Stream = typename Device::Stream;

  Optimizer(const ParamTable& table, const AdamWOptions& options);

  /// The global gradient norm, in double, of the reduced gradients; NaN or infinity when any
  /// element is. Waits for it.
  double gradient_norm(Stream& stream, View<Device, const float> gradients);

  /// One update with the clip factor of `norm`. `step` counts updates from 0.
  void step(Stream& stream, int64_t step, double learning_rate, double norm,
            View<Device, float> parameters, View<Device, const float> gradients);

  View<Device, float> m() { return m_.view(); }
  View<Device, float> v() { return v_.view(); }

 private:
  /// Neighbouring tensors of one decay setting, gaps included, updated in one launch.
  struct Run {
    Range range;
    bool decay;
  };

  AdamWOptions options_;
  std::vector<Run> runs_;
  Buffer<Device, float> m_;
  Buffer<Device, float> v_;
  Buffer<Device, AdamWStep> scalars_;
  Buffer<Device, double> squared_norm_;
};

}  // namespace lockstep
