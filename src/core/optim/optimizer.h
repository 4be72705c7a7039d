#pragma once

#include <cstdint>
#include <optional>

#include "core/base/arena_shard.h"
#include "core/base/range.h"
#include "core/device/buffer.h"
#include "core/device/view.h"
#include "core/model/param_table.h"
#include "kernels/adamw.h"
#include "kernels/segment_norms.h"

namespace lockstep {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double grad_clip = 1.0;  ///< clips the global norm; 0 = off
};

/// The part of an update that one of several ranks makes.
template <class Device>
struct UpdateShard {
  ArenaShard shard;
  /// For the sums of the gradients' squares, as SegmentSums of the arena and the ranks.
  View<Device, double> segment_sums;
};

/// AdamW over a parameter arena, or over a rank's shard of it (ZeRO's first stage: Rajbhandari et
/// al., 2020): owns both moments of what it updates, lays decay on the tensors whose spec asks for
/// it. An update is measure, clip and update, in this order; of a shard the ranks exchange their
/// segment sums behind measure, and what they have updated behind update.
template <class Device>
class Optimizer {
 public:
  using Stream = typename Device::Stream;

  /// Waits for the stream. Without `shard` it updates the whole arena.
  Optimizer(Stream& stream, const ParamTable& table, const AdamWOptions& options,
            std::optional<UpdateShard<Device>> shard = std::nullopt);

  /// What the host says of update number `step`, counted from 0.
  AdamWStep scalars(int64_t step, double learning_rate) const;

  /// Enqueues the sums of squares of this shard's reduced gradients, segment by segment.
  void measure(Stream& stream, View<Device, const float> gradients);
  /// Enqueues the global norm of what all ranks have measured, and the clip factor that follows
  /// from it. `scalars` (1) holds what scalars() gave and is completed here.
  void clip(Stream& stream, View<Device, AdamWStep> scalars);
  /// Enqueues AdamW on this shard's elements of `part` of the arena, which begins where all ranks
  /// have had as many segments. A norm that is not finite leaves parameters and moments as they
  /// are.
  void update(Stream& stream, View<Device, const AdamWStep> scalars, View<Device, float> parameters,
              View<Device, const float> gradients, Range part);

  /// All three, by an optimizer of the whole arena.
  void step(Stream& stream, View<Device, AdamWStep> scalars, View<Device, float> parameters,
            View<Device, const float> gradients);

  /// The square of the norm that the last clip in stream order found, in double; not finite when
  /// any gradient is not.
  View<Device, const double> squared_gradient_norm() const { return squared_norm_.view(); }

  /// The norm of any arena in double. Waits for it.
  double norm(Stream& stream, View<Device, const float> arena);

  const ArenaShard& shard() const { return shard_; }
  /// The moments of the shard, one segment after another.
  View<Device, float> m() { return m_.view(); }
  View<Device, float> v() { return v_.view(); }

 private:
  AdamWOptions options_;
  ArenaShard shard_;
  SegmentSums layout_;
  Buffer<Device, float> m_;
  Buffer<Device, float> v_;
  Buffer<Device, uint8_t> decays_;   ///< as AdamW::decays
  Buffer<Device, double> own_sums_;  ///< without ranks to exchange them with
  View<Device, double> segment_sums_;
  Buffer<Device, double> squared_norm_;
};

}  // namespace lockstep
