#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/trace.h"
#include "core/optim/optimizer.h"
#include "kernels/reduce.h"

// The body of Optimizer, for the one translation unit per device that instantiates it.

namespace lockstep {

template <class Device>
Optimizer<Device>::Optimizer(Stream& stream, const ParamTable& table, const AdamWOptions& options,
                             std::optional<UpdateShard<Device>> shard)
    : options_(options),
      shard_(shard ? shard->shard : ArenaShard{}),
      layout_{table.arena_size(), shard_.ranks},
      m_(shard_.size(table.arena_size())),
      v_(m_.size()),
      decays_((table.arena_size() + kDecayBlock - 1) / kDecayBlock),
      own_sums_(shard ? 0 : layout_.size()),
      segment_sums_(shard ? shard->segment_sums : own_sums_.view()),
      squared_norm_(1) {
  std::vector<uint8_t> decays(static_cast<size_t>(decays_.size()), 0);
  for (const ParamSpec& spec : table.specs()) {
    const int64_t end = (spec.range.end + kDecayBlock - 1) / kDecayBlock;
    std::fill(decays.begin() + spec.range.begin / kDecayBlock, decays.begin() + end,
              static_cast<uint8_t>(spec.decay));
  }
  copy_from_host(stream, decays_.view(), decays.data());
  stream.synchronize();
}

template <class Device>
AdamWStep Optimizer<Device>::scalars(int64_t step, double learning_rate) const {
  const auto t = static_cast<double>(step + 1);
  return {.learning_rate = static_cast<float>(learning_rate),
          .bias_correction1 = static_cast<float>(1.0 - std::pow(options_.beta1, t)),
          .bias_correction2 = static_cast<float>(1.0 - std::pow(options_.beta2, t))};
}

template <class Device>
void Optimizer<Device>::measure(Stream& stream, View<Device, const float> gradients) {
  const TraceRange trace("gradient norm");
  segment_norms(stream,
                SegmentNorms<Device>{.sums = segment_sums_, .x = gradients, .shard = shard_});
}

template <class Device>
void Optimizer<Device>::clip(Stream& stream, View<Device, AdamWStep> scalars) {
  norm_of_segments(stream,
                   NormOfSegments<Device>{
                       .out = squared_norm_.view(), .sums = segment_sums_, .layout = layout_});
  clip_scale(stream, ClipScale<Device>{.step = scalars,
                                       .squared_norm = squared_gradient_norm(),
                                       .grad_clip = options_.grad_clip});
}

template <class Device>
void Optimizer<Device>::update(Stream& stream, View<Device, const AdamWStep> scalars,
                               View<Device, float> parameters, View<Device, const float> gradients,
                               Range part) {
  LOCKSTEP_CHECK(part.begin % (shard_.ranks * kSegmentElements) == 0,
                 "a part of the arena from {} on for {} ranks", part.begin, shard_.ranks);
  const TraceRange trace("optimizer");
  const int64_t first = part.begin / shard_.ranks;
  const Range moments = {first, first + shard_.size(part.size())};
  const Range decays = {part.begin / kDecayBlock, (part.end + kDecayBlock - 1) / kDecayBlock};
  adamw(stream, AdamW<Device>{.parameters = parameters.subview(part),
                              .m = m_.view().subview(moments),
                              .v = v_.view().subview(moments),
                              .gradients = gradients.subview(part),
                              .step = scalars,
                              .decays = std::as_const(decays_).view().subview(decays),
                              .beta1 = static_cast<float>(options_.beta1),
                              .beta2 = static_cast<float>(options_.beta2),
                              .epsilon = static_cast<float>(options_.epsilon),
                              .weight_decay = static_cast<float>(options_.weight_decay),
                              .shard = shard_});
}

template <class Device>
void Optimizer<Device>::step(Stream& stream, View<Device, AdamWStep> scalars,
                             View<Device, float> parameters, View<Device, const float> gradients) {
  measure(stream, gradients);
  clip(stream, scalars);
  update(stream, scalars, parameters, gradients, {0, parameters.size()});
}

template <class Device>
double Optimizer<Device>::norm(Stream& stream, View<Device, const float> arena) {
  squared_norm(stream, SquaredNorm<Device>{.out = squared_norm_.view(), .x = arena});
  double squared = 0;
  copy_to_host(stream, &squared, squared_gradient_norm());
  stream.synchronize();
  return std::sqrt(squared);
}

}  // namespace lockstep
