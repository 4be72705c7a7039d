// A stable counting sort in one launch: every block owns a few symbols and reads all tokens twice,
// first to count, then to place. Nothing depends on the order in which threads run: atomics only
// count.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "kernels/cuda/token_index.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 32;
constexpr int kMostSymbols = 128;  // of a block
constexpr int kUnroll = 8;

struct Index {
  const int32_t* tokens;
  int32_t* begins;
  int32_t* positions;
  int size;
  int vocabulary;
  int symbols;  // of a block, at most kMostSymbols
};

/// body(position, token) for the warp's share of the tokens, a run of them, 32 a turn; every lane
/// takes part in each turn, with token -1 behind the end.
template <class Body>
__device__ void for_each_token(const Index& index, Body body) {
  constexpr int kTurn = 32 * kUnroll;
  const int share = (index.size + kWarps * kTurn - 1) / (kWarps * kTurn) * kTurn;
  const int begin = static_cast<int>(threadIdx.x) / 32 * share;
  const int end = min(index.size, begin + share);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int at = begin; at < end; at += kTurn) {
    int tokens[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int position = at + i * 32 + lane;
      tokens[i] = position < end ? index.tokens[position] : -1;
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      body(at + i * 32 + lane, tokens[i]);
    }
  }
}

__global__ void __launch_bounds__(kWarps * 32) token_index_kernel(Index index) {
  __shared__ int next[kMostSymbols][kWarps];  // first counts, then where the next position goes
  __shared__ int totals[kMostSymbols];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int first = static_cast<int>(blockIdx.x) * index.symbols;
  const int symbols = min(index.symbols, index.vocabulary - first);
  for (int i = thread; i < symbols * kWarps; i += kWarps * 32) {
    next[i / kWarps][i % kWarps] = 0;
  }
  __syncthreads();

  int below = 0;
  for_each_token(index, [&](int, int token) {
    const int symbol = token - first;
    below += token >= 0 && symbol < 0 ? 1 : 0;
    if (token >= 0 && symbol >= 0 && symbol < symbols) {
      atomicAdd(&next[symbol][warp], 1);
    }
  });
  const int before = block_sum<kWarps>(below);

  // Exclusive sums, over each symbol's warps and then over the symbols.
  for (int symbol = warp; symbol < symbols; symbol += kWarps) {
    const int count = next[symbol][lane];
    int sum = count;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int other = __shfl_up_sync(kAllLanes, sum, offset);
      sum += lane >= offset ? other : 0;
    }
    next[symbol][lane] = sum - count;
    if (lane == 31) {
      totals[symbol] = sum;
    }
  }
  __syncthreads();
  if (thread < symbols) {
    int begin = before;
    for (int symbol = 0; symbol < thread; ++symbol) {
      begin += totals[symbol];
    }
    index.begins[first + thread] = begin;
    if (first + thread + 1 == index.vocabulary) {
      index.begins[index.vocabulary] = index.size;
    }
    for (int other = 0; other < kWarps; ++other) {
      next[thread][other] += begin;
    }
  }
  __syncthreads();

  for_each_token(index, [&](int position, int token) {
    const int symbol = token - first;
    const bool own = token >= 0 && symbol >= 0 && symbol < symbols;
    const unsigned owners = __ballot_sync(kAllLanes, own);
    if (own) {
      const unsigned same = __match_any_sync(owners, symbol);
      const int rank = __popc(same & ((1U << lane) - 1));
      const int begin = next[symbol][warp];
      index.positions[begin + rank] = position;
      __syncwarp(owners);
      if (rank == 0) {
        next[symbol][warp] = begin + __popc(same);
      }
    }
    __syncwarp();
  });
}

}  // namespace

void index_tokens(CudaStream& stream, const TokenIndex& index) {
  const int64_t symbols =
      std::clamp<int64_t>(index.vocabulary / (2 * stream.facts().multiprocessors), 1, kMostSymbols);
  const int64_t blocks = (index.vocabulary + symbols - 1) / symbols;
  token_index_kernel<<<static_cast<unsigned>(blocks), kWarps * 32, 0, stream.handle()>>>(
      {.tokens = index.tokens.data(),
       .begins = index.begins.data(),
       .positions = index.positions.data(),
       .size = static_cast<int>(index.tokens.size()),
       .vocabulary = static_cast<int>(index.vocabulary),
       .symbols = static_cast<int>(symbols)});
  check_cuda(cudaGetLastError(), "launching a token index");
}

}  // namespace lockstep::cuda
