#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench_model.h"
#include "core/device/cpu_device.h"

namespace lockstep {

/// One op at one shape.
struct OpCase {
  std::string name;
  std::string shape;
  int64_t bytes = 0;           ///< that must be read and written at least
  int64_t flop = 0;            ///< of the products; 0 for an op that is bound by memory
  int64_t calls_per_step = 0;  ///< 0: the model fuses it into a product, or the collectives run it
  std::function<void()> body;  ///< owns its operands, of N(0, 1)
};

/// Every op but the matrix product, at the model's shapes, on a stream that outlives the cases.
std::vector<OpCase> op_cases(const BenchModel& model, CpuStream& stream);

/// Those whose name contains `part`. Throws UsageError, which names all that there are, for none.
std::vector<OpCase> choose_ops(std::vector<OpCase> cases, std::string_view part);

}  // namespace lockstep
