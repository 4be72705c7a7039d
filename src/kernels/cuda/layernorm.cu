// LayerNorm forward: each row is read once into registers, where its mean and then its variance are
// taken, and written once.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/check_size.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/row_team.cuh"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kBlockWarps = 4;  // of teams of one warp
constexpr int kGenericWarps = 8;

struct Forward {
  float* y;
  float* mean;
  float* rstd;
  const float* x;
  const float* gamma;
  const float* beta;
  int64_t rows;
  int channels;
};

__device__ float rstd_of(float squares, int channels) {
  return 1.0F / sqrtf(squares / static_cast<float>(channels) + kLayerNormEpsilon);
}

template <class Team>
__global__ void __launch_bounds__(Team::kWarps == 1 ? kBlockWarps * 32 : Team::kThreads)
    layernorm_kernel(Forward args) {
  const int teams = static_cast<int>(blockDim.x) / Team::kThreads;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * teams + threadIdx.x / Team::kThreads;
  if (row >= args.rows) {
    return;
  }
  const float* const from = args.x + row * args.channels;
  Pack<4> x[Team::kPacks];
  float sum = 0;
  Team::for_each_pack(args.channels, [&](int i, int c) {
    x[i] = load_pack<4>(from + c);
    sum += (x[i][0] + x[i][1]) + (x[i][2] + x[i][3]);
  });
  const float mean = Team::sum(sum) / static_cast<float>(args.channels);
  float squares = 0;
  Team::for_each_pack(args.channels, [&](int i, int) {
    for_each_lane<4>([&](int j) {
      x[i][j] -= mean;
      squares += x[i][j] * x[i][j];
    });
  });
  const float rstd = rstd_of(Team::sum(squares), args.channels);
  float* const to = args.y + row * args.channels;
  Team::for_each_pack(args.channels, [&](int i, int c) {
    const Pack<4> gamma = load_pack<4>(args.gamma + c);
    const Pack<4> beta = load_pack<4>(args.beta + c);
    Pack<4> y;
    for_each_lane<4>([&](int j) { y[j] = x[i][j] * rstd * gamma[j] + beta[j]; });
    store_pack(to + c, y);
  });
  if (threadIdx.x % Team::kThreads == 0) {
    args.mean[row] = mean;
    args.rstd[row] = rstd;
  }
}

/// For rows that no team holds: any length, any alignment. The second and third pass over a row
/// find it in the cache.
__global__ void __launch_bounds__(kGenericWarps * 32) generic_layernorm_kernel(Forward args) {
  constexpr int kThreads = kGenericWarps * 32;
  const int first = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x;
  const float* const x = args.x + row * args.channels;
  float* const y = args.y + row * args.channels;
  float sum = 0;
  for (int c = first; c < args.channels; c += kThreads) {
    sum += x[c];
  }
  const float mean = block_sum<kGenericWarps>(sum) / static_cast<float>(args.channels);
  float squares = 0;
  for (int c = first; c < args.channels; c += kThreads) {
    squares += (x[c] - mean) * (x[c] - mean);
  }
  const float rstd = rstd_of(block_sum<kGenericWarps>(squares), args.channels);
  for (int c = first; c < args.channels; c += kThreads) {
    y[c] = (x[c] - mean) * rstd * args.gamma[c] + args.beta[c];
  }
  if (first == 0) {
    args.mean[row] = mean;
    args.rstd[row] = rstd;
  }
}

}  // namespace
}  // namespace cuda

void layernorm_forward(CudaStream& stream, const LayerNormForward<CudaDevice>& args) {
  const int64_t channels = args.channels;
  const int64_t size = args.rows * channels;
  check_size("layernorm_forward: y", args.y.size(), size);
  check_size("layernorm_forward: mean", args.mean.size(), args.rows);
  check_size("layernorm_forward: rstd", args.rstd.size(), args.rows);
  check_size("layernorm_forward: x", args.x.size(), size);
  check_size("layernorm_forward: gamma", args.gamma.size(), channels);
  check_size("layernorm_forward: beta", args.beta.size(), channels);
  if (size == 0) {
    return;
  }
  const cuda::Forward forward = {.y = args.y.data(),
                                 .mean = args.mean.data(),
                                 .rstd = args.rstd.data(),
                                 .x = args.x.data(),
                                 .gamma = args.gamma.data(),
                                 .beta = args.beta.data(),
                                 .rows = args.rows,
                                 .channels = static_cast<int>(channels)};
  const bool in_registers = channels % 4 == 0 && channels <= cuda::kMostTeamChannels &&
                            cuda::all_aligned16(forward.y, forward.x, forward.gamma, forward.beta);
  if (in_registers) {
    cuda::dispatch_row_team(channels, [&](auto team) {
      using Team = decltype(team);
      constexpr int kTeams = Team::kWarps == 1 ? cuda::kBlockWarps : 1;
      cuda::layernorm_kernel<Team><<<static_cast<unsigned>((args.rows + kTeams - 1) / kTeams),
                                     kTeams * Team::kThreads, 0, stream.handle()>>>(forward);
    });
  } else {
    cuda::generic_layernorm_kernel<<<static_cast<unsigned>(args.rows), cuda::kGenericWarps * 32, 0,
                                     stream.handle()>>>(forward);
  }
  check_cuda(cudaGetLastError(), "launching a LayerNorm");
}

}  // namespace lockstep
