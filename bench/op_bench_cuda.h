#pragma once

#include <string>

#include "op_cases.h"

namespace lockstep {

/// What op_bench --device cuda measures.
struct CudaOpBench {
  BenchModel model;
  std::string name;    ///< of the model
  std::string op;      ///< only ops whose name contains this
  double seconds = 0;  ///< for each op
  std::string json;    ///< the file to write, or empty
};

/// Prints the ops' figures beside those of copies. Throws UnsupportedError without a GPU, or in a
/// build without CUDA.
void run_cuda_op_bench(const CudaOpBench& bench);

}  // namespace lockstep
