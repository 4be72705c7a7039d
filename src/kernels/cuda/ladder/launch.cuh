#pragma once

// What every rung shares around its kernel: the grid, the check, the resource report. A rung is a
// struct with
//
//   static constexpr int kTileM, kTileN, kThreads;
//   static constexpr int kSharedBytes;                         // asked for at the launch
//   template <Major A, Major B> static auto* entry(bool vectorized);   // its kernel

#include <cuda_runtime.h>

#include "core/base/ceil_div.h"
#include "core/device/cuda_error.h"
#include "kernels/cuda/allow_shared.cuh"
#include "kernels/cuda/gemm/majors.h"
#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/cuda/gemm/output.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/ladder/rung.h"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep::cuda {

/// Checks the problem, and calls launch(a, b) with its operands unless c is empty.
template <class Launch>
void launch_with_operands(const Gemm<CudaDevice>& problem, const Launch& launch) {
  check_rung_problem(problem);
  if (problem.m == 0 || problem.n == 0) {
    return;
  }
  dispatch_majors(problem.trans_a, problem.trans_b, [&](auto a_major, auto b_major) {
    launch(make_operand<a_major()>(problem.a.data(), problem.m, problem.k),
           make_operand<b_major()>(problem.b.data(), problem.n, problem.k));
  });
}

template <class RungKernel>
void launch_rung(CudaStream& stream, const Gemm<CudaDevice>& problem) {
  launch_with_operands(
      problem, [&]<Major kA, Major kB>(const Operand<kA>& a, const Operand<kB>& b) {
        auto* kernel = RungKernel::template entry<kA, kB>(a.vectorized && b.vectorized);
        allow_shared(kernel, RungKernel::kSharedBytes);
        const dim3 grid(static_cast<unsigned>(ceil_div(problem.n, RungKernel::kTileN)),
                        blocks_down(problem.m, RungKernel::kTileM, "rows"));
        kernel<<<grid, RungKernel::kThreads, RungKernel::kSharedBytes, stream.handle()>>>(
            a, b, make_output(problem.c.data(), problem.m, problem.n, problem.k));
        check_cuda(cudaGetLastError(), "launching a matrix product");
      });
}

/// That a block may have on the GPU that is current.
inline int most_shared_bytes() {
  int device = 0;
  int bytes = 0;
  check_cuda(cudaGetDevice(&device), "reading which GPU is current");
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "reading how much shared memory a block may have");
  return bytes;
}

template <class RungKernel>
Rung::Resources rung_resources(Transpose trans_a, Transpose trans_b) {
  Rung::Resources resources;
  dispatch_majors(trans_a, trans_b, [&resources](auto a_major, auto b_major) {
    auto* kernel = RungKernel::template entry<a_major(), b_major()>(true);
    cudaFuncAttributes attributes{};
    check_cuda(cudaFuncGetAttributes(&attributes, kernel), "reading a kernel's attributes");
    const int shared = static_cast<int>(attributes.sharedSizeBytes) + RungKernel::kSharedBytes;
    int blocks = 0;
    if (shared <= most_shared_bytes()) {
      allow_shared(kernel, RungKernel::kSharedBytes);
      check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                     &blocks, kernel, RungKernel::kThreads, RungKernel::kSharedBytes),
                 "reading a kernel's occupancy");
    }
    resources = {.registers = attributes.numRegs,
                 .spilled_bytes = static_cast<int>(attributes.localSizeBytes),
                 .shared_bytes = shared,
                 .resident_blocks = blocks,
                 .threads = RungKernel::kThreads};
  });
  return resources;
}

}  // namespace lockstep::cuda
