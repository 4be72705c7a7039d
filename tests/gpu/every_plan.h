#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/cuda_device.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/cuda/gemm/problem.h"
#include "kernels/cuda/ops.h"

namespace lockstep {

inline constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kTf32};

/// By every kernel that can, with k whole, in two slices, and in as many as there can be; in parts
/// of k, where operands are transposed first; swapped.
inline std::vector<GemmPlan> every_plan(const Gemm<CudaDevice>& problem, const CudaStream& stream) {
  std::vector<GemmPlan> all;
  for (const GemmKernel kernel :
       kernels_for(query_of(problem), stream.precision(), stream.facts())) {
    for (const int64_t slices : {int64_t{1}, int64_t{2}, std::max<int64_t>(problem.k / 32, 1)}) {
      all.push_back(sliced_plan(kernel, problem.k, slices));
      if (kernel_facts(kernel).wgmma) {
        for (const int64_t part_k : {32, 96}) {
          if (problem.k > part_k) {
            all.push_back(sliced_plan(kernel, part_k, slices));
            all.back().part_k = part_k;
          }
        }
      }
    }
  }
  const size_t unswapped = all.size();
  for (size_t i = 0; i < unswapped; ++i) {
    if (can_swap(all[i].kernel, query_of(problem))) {
      all.push_back(all[i]);
      all.back().swapped = true;
    }
  }
  return all;
}

}  // namespace lockstep
