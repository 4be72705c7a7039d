#pragma once

#include <cstdint>

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

  /// Waits for the stream.
  Optimizer(Stream& stream, const ParamTable& table, const AdamWOptions& options);

  /// What the host says of update number `step`, counted from 0.
  AdamWStep scalars(int64_t step, double learning_rate) const;

  /// Enqueues one update with the reduced gradients: their global norm, the clip factor that
  /// follows from it, AdamW. `scalars` (1) holds what scalars() gave and is completed here. A norm
  /// that is not finite leaves parameters and moments as they are.
  void step(Stream& stream, View<Device, AdamWStep> scalars, View<Device, float> parameters,
            View<Device, const float> gradients);
  /// The square of the norm that the last step in stream order found, in double; not finite when
  /// any gradient is not.
  View<Device, const double> squared_gradient_norm() const { return squared_norm_.view(); }

  /// The norm of any arena in double. Waits for it.
  double norm(Stream& stream, View<Device, const float> arena);

  View<Device, float> m() { return m_.view(); }
  View<Device, float> v() { return v_.view(); }

 private:
  AdamWOptions options_;
  Buffer<Device, float> m_;
  Buffer<Device, float> v_;
  Buffer<Device, uint8_t> decays_;  ///< as AdamW::decays
  Buffer<Device, double> squared_norm_;
};

}  // namespace lockstep
