#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention.h"

namespace lockstep {

/// The sizes of a model and of one rank's micro-step that the ops depend on.
struct OpBenchModel {
  AttentionShape attention;
  int64_t layers = 0;
  int64_t vocabulary = 0;
  int64_t padded_vocabulary = 0;

  int64_t rows() const { return attention.batch * attention.time; }
  int64_t channels() const { return attention.heads * attention.head_dim; }
  int64_t parameters() const;
};

/// "char-cpu" (nanoGPT's CPU recipe, one of two ranks), "char" or "124m" (GPT-2). Throws UsageError
/// for another word.
OpBenchModel op_bench_model(std::string_view name);

/// One op at one shape.
struct OpCase {
  std::string name;
  std::string shape;
  int64_t bytes = 0;           ///< that must be read and written at least
  int64_t flop = 0;            ///< of the products; 0 for an op that is bound by memory
  int64_t calls_per_step = 0;  ///< 0: the model fuses it into a product, or the collectives run it
  std::function<void()> body;  ///< owns its operands, of N(0, 1)
};

/// Every op but the matrix product, at the model's shapes.
std::vector<OpCase> op_cases(const OpBenchModel& model, int threads);

}  // namespace lockstep
