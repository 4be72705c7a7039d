#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/device/trace.h"
#include "core/optim/optimizer.h"
#include "kernels/reduce.h"

// The body of Optimizer, for the one translation unit per device that instantiates it.

namespace lockstep {

template <class Device>
Optimizer<Device>::Optimizer(Stream& stream, const ParamTable& table, const AdamWOptions& options)
    : options_(options),
      m_(table.arena_size()),
      v_(table.arena_size()),
      decays_((table.arena_size() + kDecayBlock - 1) / kDecayBlock),
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
void Optimizer<Device>::step(Stream& stream, View<Device, AdamWStep> scalars,
                             View<Device, float> parameters, View<Device, const float> gradients) {
  const TraceRange trace("optimizer");
  squared_norm(stream, SquaredNorm<Device>{.out = squared_norm_.view(), .x = gradients});
  clip_scale(stream, ClipScale<Device>{.step = scalars,
                                       .squared_norm = squared_gradient_norm(),
                                       .grad_clip = options_.grad_clip});
  adamw(stream, AdamW<Device>{.parameters = parameters,
                              .m = m_.view(),
                              .v = v_.view(),
                              .gradients = gradients,
                              .step = scalars,
                              .decays = std::as_const(decays_).view(),
                              .beta1 = static_cast<float>(options_.beta1),
                              .beta2 = static_cast<float>(options_.beta2),
                              .epsilon = static_cast<float>(options_.epsilon),
                              .weight_decay = static_cast<float>(options_.weight_decay)});
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
