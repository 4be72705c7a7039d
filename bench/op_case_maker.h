#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "op_cases.h"
#include "op_operands.h"

namespace lockstep {

/// Collects the cases of one device.
template <class Device>
class OpCaseMaker {
 public:
  using Stream = typename Device::Stream;

  /// The stream outlives the cases.
  explicit OpCaseMaker(Stream& stream) : stream_(stream), operands_(stream) {}

  Stream& stream() { return stream_; }
  OpOperands<Device>& operands() { return operands_; }

  /// `op` is called with the stream; what it moves and computes is `floats` and `flop`, and a
  /// training step has `calls` of it.
  template <class Op>
  void add(std::string name, std::string shape, int64_t floats, int64_t flop, int64_t calls,
           Op op) {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    cases_.push_back({std::move(name), std::move(shape), floats * kFloat, flop, calls,
                      [op = std::move(op), stream = &stream_] { op(*stream); }});
  }

  std::vector<OpCase> take() { return std::move(cases_); }

 private:
  Stream& stream_;
  OpOperands<Device> operands_;
  std::vector<OpCase> cases_;
};

template <class Device>
View<Device, float> at(const std::shared_ptr<Buffer<Device, float>>& buffer) {
  return buffer->view();
}

inline std::string rows_by_columns(int64_t rows, int64_t columns) {
  return fmt::format("{} x {}", rows, columns);
}

}  // namespace lockstep
