#pragma once

#include <string>
#include <vector>

#include "kernels/attention.h"

namespace lockstep {

/// What attention_bench measures.
struct AttentionBench {
  std::vector<AttentionShape> shapes;
  double seconds = 0;  ///< for each shape
  std::string json;    ///< the file to write, or empty
};

/// Prints the time of each implementation of attention on the GPU, and the memory it takes. Throws
/// UnsupportedError without a GPU, or in a build without CUDA.
void run_attention_bench(const AttentionBench& bench);

}  // namespace lockstep
