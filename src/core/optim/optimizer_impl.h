#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/optim/optimizer.h"
#include "kernels/reduce.h"

// The body of Optimizer, for the one translation unit per device that instantiates it.

namespace lockstep {

template <class Device>
Optimizer<Device>::Optimizer(const ParamTable& table, const AdamWOptions& options)
    : options_(options),
      m_(table.arena_size()),
      v_(table.arena_size()),
      scalars_(1),
      squared_norm_(1) {
  for (const ParamSpec& spec : table.specs()) {
    if (runs_.empty() || runs_.back().decay != spec.decay) {
      runs_.push_back({spec.range, spec.decay});
    }
    runs_.back().range.end = spec.range.end;
  }
}

template <class Device>
double Optimizer<Device>::gradient_norm(Stream& stream, View<Device, const float> gradients) {
  squared_norm(stream, SquaredNorm<Device>{.out = squared_norm_.view(), .x = gradients});
  double squared = 0;
  copy_to_host(stream, &squared, std::as_const(squared_norm_).view());
  stream.synchronize();
  return std::sqrt(squared);
}

template <class Device>
void Optimizer<Device>::step(Stream& stream, int64_t step, double learning_rate, double norm,
                             View<Device, float> parameters, View<Device, const float> gradients) {
  const auto t = static_cast<double>(step + 1);
  // The small term keeps a norm of zero finite; the factor is then PyTorch's to the bit.
  const double clip =
      options_.grad_clip > 0 ? std::min(1.0, options_.grad_clip / (norm + 1e-6)) : 1.0;
  const AdamWStep scalars = {
      .learning_rate = static_cast<float>(learning_rate),
      .bias_correction1 = static_cast<float>(1.0 - std::pow(options_.beta1, t)),
      .bias_correction2 = static_cast<float>(1.0 - std::pow(options_.beta2, t)),
      .gradient_scale = static_cast<float>(clip)};
  copy_from_host(stream, scalars_.view(), &scalars);
  for (const Run& run : runs_) {
    adamw(stream, AdamW<Device>{.parameters = parameters.subview(run.range),
                                .m = m_.view().subview(run.range),
                                .v = v_.view().subview(run.range),
                                .gradients = gradients.subview(run.range),
                                .step = std::as_const(scalars_).view(),
                                .beta1 = static_cast<float>(options_.beta1),
                                .beta2 = static_cast<float>(options_.beta2),
                                .epsilon = static_cast<float>(options_.epsilon),
                                .weight_decay =
                                    run.decay ? static_cast<float>(options_.weight_decay) : 0.0F});
  }
}

}  // namespace lockstep
