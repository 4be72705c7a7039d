#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm_shapes.h"

namespace lockstep {

/// What gemm_bench --device cuda measures.
struct CudaGemmBench {
  std::vector<GemmShape> shapes;
  int64_t rung = 0;    ///< of the ladder; 0 for all
  double seconds = 0;  ///< for each shape
  std::string json;    ///< the file to write, or empty
};

/// Prints the ladder's figures beside cuBLAS. Throws UnsupportedError without a GPU, or in a build
/// without CUDA.
void run_cuda_gemm_bench(const CudaGemmBench& bench);

}  // namespace lockstep
