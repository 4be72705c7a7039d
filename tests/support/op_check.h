#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/device/cpu_device.h"

/// What the tests of every op share: inputs, outputs that show what was not written or written too
/// far, and the comparisons.
namespace lockstep {

/// `size` draws of N(0, scale²), a pure function of the seed.
std::vector<float> normal_values(int64_t size, uint64_t seed, double scale = 1.0);

std::vector<double> to_double(const std::vector<float>& values);

inline CpuView<const float> view_of(const std::vector<float>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}
inline CpuView<const int32_t> view_of(const std::vector<int32_t>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

/// Memory for an output: every element and a margin on both sides start as NaN, at an address that
/// is a multiple of the element's size alone. `values` fails the test when the margin was touched.
class Output {
 public:
  explicit Output(int64_t size);
  explicit Output(const std::vector<float>& start);

  CpuView<float> view();
  std::vector<float> values() const;

 private:
  std::vector<float> memory_;
};

/// max |value - reference| / max |reference|; NaN when any value is not a number.
double relative_error(const std::vector<float>& values, const std::vector<double>& reference);

/// The error of `values` is at most twice that of `plain`, the same formula in plain float loops.
/// Neither is held to less than half a unit in the last place of the largest value.
void expect_close(std::string_view what, const std::vector<float>& values,
                  const std::vector<float>& plain, const std::vector<double>& reference);

/// Equal bit for bit.
void expect_same_bits(std::string_view what, const std::vector<float>& left,
                      const std::vector<float>& right);

/// Runs an op with 1, 2, 3 and 5 threads; all outputs must have the same bits. Returns them.
std::vector<float> at_any_thread_count(std::string_view what,
                                       const std::function<std::vector<float>(CpuStream&)>& run_op);

/// `gradient` is the derivative of `function` at `point`: checked at every coordinate by central
/// differences in double.
void expect_gradient(std::string_view what,
                     const std::function<double(const std::vector<double>&)>& function,
                     const std::vector<double>& point, const std::vector<double>& gradient);

double dot(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace lockstep
