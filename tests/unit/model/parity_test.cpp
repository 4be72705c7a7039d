#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/device/cpu_device.h"
#include "unit/model/tiny_gpt.h"

// Logits, loss and gradients against PyTorch in float64: tests/parity/make_gpt_reference.py.

namespace lockstep {
namespace {

constexpr double kTolerance = 1e-5;  // relative to the largest value of a tensor or row

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

struct Reference {
  GptConfig config;
  int64_t batch = 0;
  double loss = 0;
  std::vector<LogitRow> logits;
  std::vector<ReferenceGradient> gradients;
};

ReferenceGradient parse_gradient(std::istringstream& words) {
  ReferenceGradient gradient;
  words >> gradient.name >> gradient.largest >> gradient.norm >> gradient.sum;
  Sample sample{};
  while (words >> sample.index >> sample.value) {
    gradient.samples.push_back(sample);
  }
  return gradient;
}

LogitRow parse_logits(std::istringstream& words) {
  LogitRow logits;
  words >> logits.row;
  double value = 0;
  while (words >> value) {
    logits.values.push_back(value);
  }
  return logits;
}

Reference read_reference(const std::string& form) {
  std::ifstream file(LOCKSTEP_PARITY_FILE);
  Reference reference;
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

void expect_logits(CpuView<const float> logits, const Reference& reference) {
  for (const LogitRow& row : reference.logits) {
    double largest = 0;
    double difference = 0;
    for (size_t v = 0; v < row.values.size(); ++v) {
      const int64_t at = row.row * reference.config.padded_vocab() + static_cast<int64_t>(v);
      largest = std::max(largest, std::abs(row.values[v]));
      difference = std::max(difference, std::abs(static_cast<double>(logits[at]) - row.values[v]));
    }
    EXPECT_LT(difference, kTolerance * largest) << "row " << row.row;
  }
}

void expect_gradient(CpuView<float> gradient, const ReferenceGradient& reference) {
  double squares = 0;
  double sum = 0;
  for (const float g : gradient) {
    squares += static_cast<double>(g) * g;
    sum += g;
  }
  EXPECT_NEAR(std::sqrt(squares), reference.norm, kTolerance * reference.norm) << reference.name;
  // The elements of a sum may cancel; |sum| <= norm * sqrt(n) bounds what it is relative to.
  EXPECT_NEAR(sum, reference.sum,
              kTolerance * reference.norm * std::sqrt(static_cast<double>(gradient.size())))
      << reference.name;
  for (const Sample& sample : reference.samples) {
    EXPECT_NEAR(gradient[sample.index], sample.value, kTolerance * reference.largest)
        << reference.name << "[" << sample.index << "]";
  }
}

class Parity : public testing::TestWithParam<const char*> {};

TEST_P(Parity, LogitsLossAndGradientsEqualPyTorch) {
  const Reference reference = read_reference(GetParam());
  ASSERT_EQ(reference.logits.size(), 6U);
  ASSERT_EQ(reference.gradients.size(), 28U);
  TinyGpt<CpuDevice> gpt(reference.config, reference.batch, reference.config.block_size);
  CpuStream stream;
  expect_logits(gpt.model.logits(stream, gpt.tokens.view()), reference);
  EXPECT_NEAR(gpt.forward(stream), reference.loss, kTolerance * reference.loss);
  gpt.model.backward(stream, false, {});
  for (const ReferenceGradient& gradient : reference.gradients) {
    expect_gradient(gpt.gradients.view().subview(gpt.table.find(gradient.name).range), gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(BothFormsOfGelu, Parity, testing::Values("tanh", "erf"),
                         [](const auto& form) { return std::string(form.param); });

}  // namespace
}  // namespace lockstep
