#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/param_table.h"

// Each parameter tensor is stepped along u = g / ‖g‖, so that all its elements pull together; the
// predicted slope of the loss is then ‖g‖. The slope is taken by central differences of fourth
// order, (8 (L(e) - L(-e)) - (L(2e) - L(-2e))) / 12e, with e chosen to move the loss by 0.0025: a
// float loss of 3 is rounded to 1e-7, which is 5e-5 of that.

namespace lockstep {

inline constexpr double kGradientCheckLossChange = 0.0025;

struct TensorError {
  std::string name;
  double relative;
};

/// The error of each tensor's slope, relative to ‖g‖. `model` has a table, and set_parameters;
/// `gradients` lies as its arena, `loss` evaluates it. Leaves the model at `start`.
template <class Model, class Loss>
std::vector<TensorError> directional_errors(Model& model, const std::vector<float>& start,
                                            const std::vector<float>& gradients, const Loss& loss) {
  std::vector<TensorError> errors;
  for (const ParamSpec& spec : model.table.specs()) {
    const auto begin = static_cast<size_t>(spec.range.begin);
    const auto end = static_cast<size_t>(spec.range.end);
    double squares = 0;
    for (size_t i = begin; i < end; ++i) {
      squares += static_cast<double>(gradients[i]) * gradients[i];
    }
    const double norm = std::sqrt(squares);
    const double epsilon = kGradientCheckLossChange / norm;
    const auto loss_at = [&](double distance) {
      std::vector<float> moved = start;
      for (size_t i = begin; i < end; ++i) {
        moved[i] = static_cast<float>(start[i] + distance * gradients[i] / norm);
      }
      model.set_parameters(moved);
      return static_cast<double>(loss());
    };
    const double near = loss_at(epsilon) - loss_at(-epsilon);
    const double far = loss_at(2 * epsilon) - loss_at(-2 * epsilon);
    errors.push_back({spec.name, std::abs((8 * near - far) / (12 * epsilon) - norm) / norm});
  }
  model.set_parameters(start);
  return errors;
}

}  // namespace lockstep
