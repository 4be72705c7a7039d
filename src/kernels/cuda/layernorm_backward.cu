// LayerNorm backward: one pass over memory. A team takes rows in turn and keeps its columns' part
// of dgamma and dbeta in registers over all of them; a second launch adds the blocks' parts in
// order.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "core/device/dependent_launch.cuh"
#include "kernels/check_size.h"
#include "kernels/cuda/column_partials.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/row_team.cuh"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kWarps = 8;        // of a block
constexpr int kGenericRows = 8;  // that a block of the generic kernel sums at a time
constexpr int kGenericParts = 64;

struct Backward {
  float* dx;
  float* partials;  // (blocks, 2C): dgamma, then dbeta
  const float* dy;
  const float* x;
  const float* mean;
  const float* rstd;
  const float* gamma;
  int64_t rows;
  int channels;
};

template <class Team>
__global__ void __launch_bounds__(kWarps * 32) layernorm_backward_kernel(Backward args) {
  constexpr int kTeams = kWarps / Team::kWarps;
  extern __shared__ __align__(16) float sums[];  // (2C), of teams of one warp
  allow_dependent_launch();
  const int team = static_cast<int>(threadIdx.x) / Team::kThreads;
  Pack<4> dgamma[Team::kPacks] = {};
  Pack<4> dbeta[Team::kPacks] = {};
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kTeams + team; row < args.rows;
       row += static_cast<int64_t>(gridDim.x) * kTeams) {
    const int64_t offset = row * args.channels;
    const float mean = args.mean[row];
    const float rstd = args.rstd[row];
    Pack<4> normal[Team::kPacks];  // x̂
    Pack<4> g[Team::kPacks];
    Pack<4> dx[Team::kPacks];
    Team::for_each_pack(args.channels, [&](int i, int c) {
      normal[i] = load_pack<4>(args.x + offset + c);
      g[i] = load_pack<4>(args.dy + offset + c);
      dx[i] = load_pack<4>(args.dx + offset + c);
    });
    float sum_g = 0;
    float sum_gx = 0;
    Team::for_each_pack(args.channels, [&](int i, int c) {
      const Pack<4> gamma = load_pack<4>(args.gamma + c);
      for_each_lane<4>([&](int j) {
        normal[i][j] = (normal[i][j] - mean) * rstd;
        dgamma[i][j] += g[i][j] * normal[i][j];
        dbeta[i][j] += g[i][j];
        g[i][j] *= gamma[j];
        sum_g += g[i][j];
        sum_gx += g[i][j] * normal[i][j];
      });
    });
    const float mean_g = Team::sum(sum_g) / static_cast<float>(args.channels);
    const float mean_gx = Team::sum(sum_gx) / static_cast<float>(args.channels);
    Team::for_each_pack(args.channels, [&](int i, int c) {
      for_each_lane<4>(
          [&](int j) { dx[i][j] += __fmul_rn(rstd, g[i][j] - mean_g - normal[i][j] * mean_gx); });
      store_pack(args.dx + offset + c, dx[i]);
    });
  }

  float* const partials = args.partials + static_cast<int64_t>(blockIdx.x) * 2 * args.channels;
  if constexpr (kTeams == 1) {
    Team::for_each_pack(args.channels, [&](int i, int c) {
      store_pack(partials + c, dgamma[i]);
      store_pack(partials + args.channels + c, dbeta[i]);
    });
  } else {
    for (int turn = 0; turn < kTeams; ++turn) {
      if (turn == team) {
        Team::for_each_pack(args.channels, [&](int i, int c) {
          if (turn > 0) {
            const Pack<4> before_gamma = load_pack<4>(sums + c);
            const Pack<4> before_beta = load_pack<4>(sums + args.channels + c);
            for_each_lane<4>([&](int j) {
              dgamma[i][j] += before_gamma[j];
              dbeta[i][j] += before_beta[j];
            });
          }
          store_pack(sums + c, dgamma[i]);
          store_pack(sums + args.channels + c, dbeta[i]);
        });
      }
      __syncthreads();
    }
    for (int c = static_cast<int>(threadIdx.x); c < 2 * args.channels; c += kWarps * 32) {
      partials[c] = sums[c];
    }
  }
}

/// For rows that no team holds: dx alone, each row by one block.
__global__ void __launch_bounds__(kWarps * 32) generic_dx_kernel(Backward args) {
  const int64_t row = blockIdx.x;
  const int64_t offset = row * args.channels;
  const float mean = args.mean[row];
  const float rstd = args.rstd[row];
  const int first = static_cast<int>(threadIdx.x);
  float sum_g = 0;
  float sum_gx = 0;
  for (int c = first; c < args.channels; c += kWarps * 32) {
    const float g = args.dy[offset + c] * args.gamma[c];
    sum_g += g;
    sum_gx += g * ((args.x[offset + c] - mean) * rstd);
  }
  const float mean_g = block_sum<kWarps>(sum_g) / static_cast<float>(args.channels);
  const float mean_gx = block_sum<kWarps>(sum_gx) / static_cast<float>(args.channels);
  for (int c = first; c < args.channels; c += kWarps * 32) {
    const float g = args.dy[offset + c] * args.gamma[c];
    const float normal = (args.x[offset + c] - mean) * rstd;
    args.dx[offset + c] += __fmul_rn(rstd, g - mean_g - normal * mean_gx);
  }
}

/// dgamma's and dbeta's parts of 32 columns over the rows of a block.
__global__ void __launch_bounds__(kGenericRows * 32)
    generic_partials_kernel(Backward args, int64_t rows_of_block) {
  __shared__ float sums[2][kGenericRows][32];
  allow_dependent_launch();
  const int column = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x);
  const int64_t begin = blockIdx.y * rows_of_block;
  const int64_t end = min(args.rows, begin + rows_of_block);
  float dgamma = 0;
  float dbeta = 0;
  if (column < args.channels) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kGenericRows) {
      const float dy = args.dy[row * args.channels + column];
      const float x = args.x[row * args.channels + column];
      dgamma += dy * ((x - args.mean[row]) * args.rstd[row]);
      dbeta += dy;
    }
  }
  sums[0][threadIdx.y][threadIdx.x] = dgamma;
  sums[1][threadIdx.y][threadIdx.x] = dbeta;
  __syncthreads();
  if (threadIdx.y < 2 && column < args.channels) {
    float sum = 0;
#pragma unroll
    for (int row = 0; row < kGenericRows; ++row) {
      sum += sums[threadIdx.y][row][threadIdx.x];
    }
    args.partials[(blockIdx.y * 2 + threadIdx.y) * args.channels + column] = sum;
  }
}

/// The first stage in registers. Returns how many rows of partial sums it leaves.
int64_t launch_in_registers(CudaStream& stream, Backward args) {
  int64_t blocks = 0;
  dispatch_row_team(args.channels, [&](auto team) {
    using Team = decltype(team);
    constexpr int kTeams = kWarps / Team::kWarps;
    // As many as are resident at once: the registers of long rows leave no room for a second.
    const int64_t resident = (Team::kPacks > 4 ? 1 : 2) * stream.facts().multiprocessors;
    blocks = std::min((args.rows + kTeams - 1) / kTeams, resident);
    args.partials = stream.scratch<float>(blocks * 2 * args.channels).data();
    const size_t shared = kTeams == 1 ? 0 : 2 * args.channels * sizeof(float);
    if (blocks > 0) {
      layernorm_backward_kernel<Team>
          <<<static_cast<unsigned>(blocks), kWarps * 32, shared, stream.handle()>>>(args);
    }
  });
  return blocks;
}

int64_t launch_generic(CudaStream& stream, Backward args) {
  const int64_t rows_of_block =
      std::max<int64_t>((args.rows + kGenericParts - 1) / kGenericParts, kGenericRows);
  const int64_t parts = (args.rows + rows_of_block - 1) / rows_of_block;
  args.partials = stream.scratch<float>(parts * 2 * args.channels).data();
  if (parts > 0) {
    generic_dx_kernel<<<static_cast<unsigned>(args.rows), kWarps * 32, 0, stream.handle()>>>(args);
    const dim3 grid(static_cast<unsigned>((args.channels + 31) / 32), static_cast<unsigned>(parts));
    generic_partials_kernel<<<grid, dim3(32, kGenericRows), 0, stream.handle()>>>(args,
                                                                                  rows_of_block);
  }
  return parts;
}

}  // namespace
}  // namespace cuda

void layernorm_backward(CudaStream& stream, const LayerNormBackward<CudaDevice>& args) {
  const int64_t channels = args.channels;
  const int64_t size = args.rows * channels;
  check_size("layernorm_backward: dx", args.dx.size(), size);
  check_size("layernorm_backward: dgamma", args.dgamma.size(), channels);
  check_size("layernorm_backward: dbeta", args.dbeta.size(), channels);
  check_size("layernorm_backward: dy", args.dy.size(), size);
  check_size("layernorm_backward: x", args.x.size(), size);
  check_size("layernorm_backward: mean", args.mean.size(), args.rows);
  check_size("layernorm_backward: rstd", args.rstd.size(), args.rows);
  check_size("layernorm_backward: gamma", args.gamma.size(), channels);
  if (channels == 0) {
    return;
  }
  const cuda::Backward backward = {.dx = args.dx.data(),
                                   .partials = nullptr,
                                   .dy = args.dy.data(),
                                   .x = args.x.data(),
                                   .mean = args.mean.data(),
                                   .rstd = args.rstd.data(),
                                   .gamma = args.gamma.data(),
                                   .rows = args.rows,
                                   .channels = static_cast<int>(channels)};
  const bool in_registers =
      channels % 4 == 0 && channels <= cuda::kMostTeamChannels &&
      cuda::all_aligned16(backward.dx, backward.dy, backward.x, backward.gamma);
  const int64_t parts = in_registers ? cuda::launch_in_registers(stream, backward)
                                     : cuda::launch_generic(stream, backward);
  check_cuda(cudaGetLastError(), "launching a LayerNorm backward");
  cuda::sum_column_partials(stream, {.parts = parts,
                                     .columns = 2 * channels,
                                     .partials = stream.scratch<float>(parts * 2 * channels),
                                     .out = args.dgamma.subview({0, channels}),
                                     .out_behind = args.dbeta.subview({0, channels}),
                                     .accumulate = args.accumulate});
}

}  // namespace lockstep
