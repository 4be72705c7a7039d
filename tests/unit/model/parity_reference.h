#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/range.h"
#include "core/model/gpt_config.h"
#include "core/model/param_table.h"

// What PyTorch computes in float64 for the model of the formula (formula.h), as
// tests/parity/make_gpt_reference.py writes it, and how far a model of ours is from it.

namespace lockstep {

struct Sample {
  int64_t index;
  double value;
};

struct ReferenceGradient {
  std::string name;
  double largest = 0;
  double norm = 0;
  double sum = 0;
  std::vector<Sample> samples;
};

struct LogitRow {
  int64_t row = 0;
  std::vector<double> values;
};

struct ParityReference {
  GptConfig config;
  int64_t batch = 0;
  double loss = 0;
  std::vector<LogitRow> logits;
  std::vector<ReferenceGradient> gradients;
};

inline ReferenceGradient parse_gradient(std::istringstream& words) {
  ReferenceGradient gradient;
  words >> gradient.name >> gradient.largest >> gradient.norm >> gradient.sum;
  Sample sample{};
  while (words >> sample.index >> sample.value) {
    gradient.samples.push_back(sample);
  }
  return gradient;
}

inline LogitRow parse_logits(std::istringstream& words) {
  LogitRow logits;
  words >> logits.row;
  double value = 0;
  while (words >> value) {
    logits.values.push_back(value);
  }
  return logits;
}

/// What `file` has of one form of GELU, "tanh" or "erf".
inline ParityReference read_parity_reference(const std::string& path, const std::string& form) {
  std::ifstream file(path);
  ParityReference reference;
  GptConfig& c = reference.config;
  c.gelu = form == "erf" ? Gelu::kErf : Gelu::kTanh;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    std::string line_form;
    words >> kind;
    if (kind == "shape") {
      words >> c.vocab_size >> c.block_size >> c.n_layer >> c.n_head >> c.n_embd >> reference.batch;
      continue;
    }
    words >> line_form;
    if (line_form != form) {
      continue;
    }
    if (kind == "loss") {
      words >> reference.loss;
    } else if (kind == "logits") {
      reference.logits.push_back(parse_logits(words));
    } else if (kind == "gradient") {
      reference.gradients.push_back(parse_gradient(words));
    }
  }
  return reference;
}

/// Relative to the largest value of a row of logits, or of a tensor's gradient.
struct ParityErrors {
  double loss = 0;
  double logits = 0;
  double gradients = 0;
  std::string worst;  ///< the tensor whose gradient is furthest off
  double largest() const { return std::max({loss, logits, gradients}); }
};

/// |value - wanted| / scale; infinite when it is no number.
inline double parity_error(double value, double wanted, double scale) {
  const double error = std::abs(value - wanted) / scale;
  return std::isfinite(error) ? error : INFINITY;
}

inline double logits_error(const std::vector<float>& logits, const ParityReference& reference) {
  double error = 0;
  for (const LogitRow& row : reference.logits) {
    double largest = 0;
    for (const double value : row.values) {
      largest = std::max(largest, std::abs(value));
    }
    for (size_t v = 0; v < row.values.size(); ++v) {
      const int64_t at = row.row * reference.config.padded_vocab() + static_cast<int64_t>(v);
      error =
          std::max(error, parity_error(logits[static_cast<size_t>(at)], row.values[v], largest));
    }
  }
  return error;
}

/// Of the samples, of the norm, and of the sum: its elements may cancel, and norm * sqrt(n) bounds
/// what it is relative to.
inline double gradient_error(const std::vector<float>& arena, Range range,
                             const ReferenceGradient& reference) {
  double squares = 0;
  double sum = 0;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const double g = arena[static_cast<size_t>(i)];
    squares += g * g;
    sum += g;
  }
  double error =
      std::max(parity_error(std::sqrt(squares), reference.norm, reference.norm),
               parity_error(sum, reference.sum,
                            reference.norm * std::sqrt(static_cast<double>(range.size()))));
  for (const Sample& sample : reference.samples) {
    error = std::max(error, parity_error(arena[static_cast<size_t>(range.begin + sample.index)],
                                         sample.value, reference.largest));
  }
  return error;
}

inline ParityErrors parity_errors(const ParityReference& reference, double loss,
                                  const std::vector<float>& logits,
                                  const std::vector<float>& gradients) {
  ParityErrors errors = {.loss = parity_error(loss, reference.loss, reference.loss),
                         .logits = logits_error(logits, reference),
                         .gradients = 0,
                         .worst = {}};
  const ParamTable table(reference.config);
  for (const ReferenceGradient& gradient : reference.gradients) {
    const double error = gradient_error(gradients, table.find(gradient.name).range, gradient);
    if (error > errors.gradients) {
      errors.gradients = error;
      errors.worst = gradient.name;
    }
  }
  return errors;
}

}  // namespace lockstep
