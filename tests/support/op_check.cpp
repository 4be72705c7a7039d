#include "support/op_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/random.h"

namespace lockstep {
namespace {

constexpr size_t kMargin = 65;  // odd: the output starts at no multiple of a vector
constexpr double kHalfUlp = 0x1p-24;

}  // namespace

std::vector<float> normal_values(int64_t size, uint64_t seed, double scale) {
  std::vector<float> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(scale * random_normal(seed, 0, i));
  }
  return values;
}

std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

Output::Output(int64_t size)
    : memory_(static_cast<size_t>(size) + 2 * kMargin, std::numeric_limits<float>::quiet_NaN()) {}

Output::Output(const std::vector<float>& start) : Output(static_cast<int64_t>(start.size())) {
  std::copy(start.begin(), start.end(), memory_.begin() + kMargin);
}

CpuView<float> Output::view() {
  return {memory_.data() + kMargin, static_cast<int64_t>(memory_.size() - 2 * kMargin)};
}

std::vector<float> Output::values() const {
  const auto is_nan = [](float x) { return std::isnan(x); };
  EXPECT_TRUE(std::all_of(memory_.begin(), memory_.begin() + kMargin, is_nan))
      << "written in front of the output";
  EXPECT_TRUE(std::all_of(memory_.end() - kMargin, memory_.end(), is_nan))
      << "written behind the output";
  return {memory_.begin() + kMargin, memory_.end() - kMargin};
}

double relative_error(const std::vector<float>& values, const std::vector<double>& reference) {
  EXPECT_EQ(values.size(), reference.size());
  double error = 0;
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - reference[i]);
    if (std::isnan(difference)) {
      return difference;
    }
    error = std::max(error, difference);
    largest = std::max(largest, std::abs(reference[i]));
  }
  return largest > 0 ? error / largest : error;
}

void expect_close(std::string_view what, const std::vector<float>& values,
                  const std::vector<float>& plain, const std::vector<double>& reference) {
  const double tolerance = 2 * std::max(relative_error(plain, reference), kHalfUlp);
  EXPECT_LE(relative_error(values, reference), tolerance) << what;
}

void expect_same_bits(std::string_view what, const std::vector<float>& left,
                      const std::vector<float>& right) {
  ASSERT_EQ(left.size(), right.size()) << what;
  for (size_t i = 0; i < left.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(left[i]), std::bit_cast<uint32_t>(right[i]))
        << what << ", element " << i << ": " << left[i] << " and " << right[i];
  }
}

std::vector<float> at_any_thread_count(
    std::string_view what, const std::function<std::vector<float>(CpuStream&)>& run_op) {
  CpuStream one(1);
  const std::vector<float> expected = run_op(one);
  for (const int threads : {2, 3, 5}) {
    CpuStream stream(threads);
    expect_same_bits(what, expected, run_op(stream));
  }
  return expected;
}

void expect_gradient(std::string_view what,
                     const std::function<double(const std::vector<double>&)>& function,
                     const std::vector<double>& point, const std::vector<double>& gradient) {
  ASSERT_EQ(point.size(), gradient.size()) << what;
  constexpr double kStep = 1e-4;
  double largest = 0;
  for (const double g : gradient) {
    largest = std::max(largest, std::abs(g));
  }
  std::vector<double> moved = point;
  for (size_t i = 0; i < point.size(); ++i) {
    moved[i] = point[i] + kStep;
    const double above = function(moved);
    moved[i] = point[i] - kStep;
    const double below = function(moved);
    moved[i] = point[i];
    EXPECT_NEAR((above - below) / (2 * kStep), gradient[i], 1e-6 * largest)
        << what << ", coordinate " << i;
  }
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    total += a[i] * b[i];
  }
  return total;
}

}  // namespace lockstep
