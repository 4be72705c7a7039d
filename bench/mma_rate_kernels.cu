#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/cuda/ptx/mma.cuh"
#include "mma_rate_kernels.h"

namespace lockstep {
namespace {

constexpr int kTurns = 4096;

// Every warp multiplies kRows fragments of a by kColumns of b, again and again; kRounded: rounds
// them first, each time, as a kernel does that reads them anew.
template <int kRows, int kColumns, bool kRounded>
__global__ void multiply(float* out, uint32_t seed) {
  uint32_t bits = threadIdx.x * 2654435761U + blockIdx.x + seed;
  const auto next = [&bits] {  // a float in [1, 2)
    bits = bits * 1664525U + 1013904223U;
    return bits >> 9U | 0x3F800000U;
  };
  uint32_t a[kRows][4];
  uint32_t b[kColumns][2];
  float sum[kRows][kColumns][4] = {};
  for (auto& fragment : a) {
    for (uint32_t& word : fragment) {
      word = next();
    }
  }
  for (auto& fragment : b) {
    for (uint32_t& word : fragment) {
      word = next();
    }
  }
#pragma unroll 1
  for (int turn = 0; turn < kTurns; ++turn) {
    if constexpr (kRounded) {
      for (auto& fragment : a) {
        for (uint32_t& word : fragment) {
          word = cuda::round_to_tf32(word);
        }
      }
      for (auto& fragment : b) {
        for (uint32_t& word : fragment) {
          word = cuda::round_to_tf32(word);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        cuda::mma_tf32(sum[i][j], a[i], make_uint2(b[j][0], b[j][1]));
      }
    }
  }
  float total = 0;
  for (const auto& row : sum) {
    for (const auto& four : row) {
      for (const float value : four) {
        total += value;
      }
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

template <int kRows, int kColumns, bool kRounded>
MmaRateCase case_of(const char* what, int warps) {
  return {what, warps, double{kTurns} * kRows * kColumns, &multiply<kRows, kColumns, kRounded>};
}

}  // namespace

std::vector<MmaRateCase> mma_rate_cases() {
  return {
      case_of<4, 8, false>("64 x 64 a warp", 4),         case_of<4, 8, false>("64 x 64 a warp", 8),
      case_of<4, 8, true>("64 x 64 a warp, rounded", 8), case_of<2, 4, false>("32 x 32 a warp", 8),
      case_of<2, 4, false>("32 x 32 a warp", 16),
  };
}

void MmaRateCase::launch(CudaStream& stream, CudaView<float> out, int multiprocessors) const {
  kernel<<<multiprocessors, warps * 32, 0, stream.handle()>>>(out.data(), 1);
  check_cuda(cudaGetLastError(), "launching products");
}

}  // namespace lockstep
