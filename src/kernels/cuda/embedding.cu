// The token and position embedding and its gradient. Backward sorts the positions by token; the
// rows of dx that belong to one symbol are then summed without atomics.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "kernels/check_size.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/token_index.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kWarps = 8;   // of a block
constexpr int kShort = 32;  // most positions of a symbol that one warp sums alone

struct Forward {
  float* x;
  const int32_t* tokens;
  const float* wte;
  const float* wpe;
  int64_t rows;
  int time;
  int channels;
};

/// A warp takes a position.
template <int kWidth>
__global__ void __launch_bounds__(kWarps * 32) embedding_kernel(Forward args) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= args.rows) {
    return;
  }
  const float* const wte = args.wte + static_cast<int64_t>(args.tokens[row]) * args.channels;
  const float* const wpe = args.wpe + row % args.time * args.channels;
  float* const x = args.x + row * args.channels;
#pragma unroll 4
  for (int c = static_cast<int>(threadIdx.x) % 32 * kWidth; c < args.channels; c += 32 * kWidth) {
    Pack<kWidth> sum = load_pack<kWidth>(wte + c);
    const Pack<kWidth> position = load_pack<kWidth>(wpe + c);
    for_each_lane<kWidth>([&](int i) { sum[i] += position[i]; });
    store_pack(x + c, sum);
  }
}

struct Backward {
  float* dwte;
  float* dwpe;
  const float* head;
  const float* dx;
  const int32_t* begins;
  const int32_t* positions;
  int64_t rows;
  int64_t time;
  int64_t wpe_rows;
  int channels;
  int slabs;  // of 32 packs, to a row
  int64_t units;
  int units_of_block;
  bool accumulate;
};

/// The rows of dx at positions[begin … end), one after the other.
template <int kWidth>
__device__ Pack<kWidth> sum_positions(const Backward& args, int begin, int end, int channel) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Pack<kWidth> sum = {};
  for (int at = begin; at < end; at += 32) {
    const int count = min(32, end - at);
    const int own = lane < count ? args.positions[at + lane] : 0;
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      const int64_t position = __shfl_sync(kAllLanes, own, i);
      if (channel < args.channels) {
        const Pack<kWidth> row = load_pack<kWidth>(args.dx + position * args.channels + channel);
        for_each_lane<kWidth>([&](int j) { sum[j] += row[j]; });
      }
    }
  }
  return sum;
}

template <int kWidth>
__device__ void put(float* to, Pack<kWidth> value, bool accumulate) {
  if (accumulate) {
    const Pack<kWidth> before = load_pack<kWidth>(to);
    for_each_lane<kWidth>([&](int i) { value[i] = before[i] + value[i]; });
  }
  store_pack(to, value);
}

/// A unit is a slab of one symbol's row. Units with few positions are taken by a warp each, then
/// those with many by the whole block, each warp a run of the positions.
template <int kWidth>
__global__ void __launch_bounds__(kWarps * 32) dwte_kernel(Backward args) {
  __shared__ Pack<kWidth> sums[kWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * args.units_of_block;
  for (int i = 0; i < args.units_of_block; ++i) {
    const int64_t unit = first + i;
    if (unit >= args.units) {
      break;
    }
    const int64_t symbol = unit / args.slabs;
    const int begin = args.begins[symbol];
    const int end = args.begins[symbol + 1];
    const bool alone = end - begin <= kShort;
    if (alone && warp != i) {
      continue;
    }
    const int channel = static_cast<int>(unit % args.slabs) * 32 * kWidth + lane * kWidth;
    const int64_t count = end - begin;
    const int from = begin + (alone ? 0 : static_cast<int>(count * warp / kWarps));
    const int to = alone ? end : begin + static_cast<int>(count * (warp + 1) / kWarps);
    Pack<kWidth> sum = sum_positions<kWidth>(args, from, to, channel);
    if (!alone) {
      __syncthreads();  // the unit before has been read
      sums[warp][lane] = sum;
      __syncthreads();
      if (warp != 0) {
        continue;
      }
#pragma unroll
      for (int other = 1; other < kWarps; ++other) {
        for_each_lane<kWidth>([&](int j) { sum[j] += sums[other][lane][j]; });
      }
    }
    if (channel < args.channels) {
      const int64_t at = symbol * args.channels + channel;
      const Pack<kWidth> head = load_pack<kWidth>(args.head + at);
      for_each_lane<kWidth>([&](int j) { sum[j] = head[j] + sum[j]; });
      put(args.dwte + at, sum, args.accumulate);
    }
  }
}

/// A thread takes a pack of one position's row and sums it over the batch.
template <int kWidth>
__global__ void __launch_bounds__(kWarps * 32) dwpe_kernel(Backward args) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kWarps * 32 + threadIdx.x) * kWidth;
  if (at >= args.wpe_rows * args.channels) {
    return;
  }
  Pack<kWidth> sum = {};
  const int64_t sequence = args.time * args.channels;
  if (at < sequence) {
    const int64_t end = args.rows * args.channels;
#pragma unroll 8
    for (int64_t from = at; from < end; from += sequence) {
      const Pack<kWidth> row = load_pack<kWidth>(args.dx + from);
      for_each_lane<kWidth>([&](int i) { sum[i] += row[i]; });
    }
  }
  put(args.dwpe + at, sum, args.accumulate);
}

template <int kWidth>
void launch_backward(CudaStream& stream, const Backward& args) {
  constexpr int64_t kThreads = kWarps * 32;
  dwte_kernel<kWidth>
      <<<static_cast<unsigned>((args.units + args.units_of_block - 1) / args.units_of_block),
         kThreads, 0, stream.handle()>>>(args);
  check_cuda(cudaGetLastError(), "launching the token embedding's gradient");
  const int64_t packs = args.wpe_rows * args.channels / kWidth;
  if (packs > 0) {
    dwpe_kernel<kWidth><<<static_cast<unsigned>((packs + kThreads - 1) / kThreads), kThreads, 0,
                          stream.handle()>>>(args);
    check_cuda(cudaGetLastError(), "launching the position embedding's gradient");
  }
}

}  // namespace
}  // namespace cuda

void embedding_forward(CudaStream& stream, const EmbeddingForward<CudaDevice>& args) {
  const int64_t rows = args.batch * args.time;
  check_size("embedding_forward: x", args.x.size(), rows * args.channels);
  check_size("embedding_forward: tokens", args.tokens.size(), rows);
  check_size("embedding_forward: wpe", args.wpe.size(), args.time * args.channels);
  if (rows == 0) {
    return;
  }
  const bool vectorized = args.channels % 4 == 0 &&
                          cuda::all_aligned16(args.x.data(), args.wte.data(), args.wpe.data());
  cuda::dispatch_width(vectorized, [&](auto width) {
    cuda::embedding_kernel<decltype(width)::value>
        <<<static_cast<unsigned>((rows + cuda::kWarps - 1) / cuda::kWarps), cuda::kWarps * 32, 0,
           stream.handle()>>>({.x = args.x.data(),
                               .tokens = args.tokens.data(),
                               .wte = args.wte.data(),
                               .wpe = args.wpe.data(),
                               .rows = rows,
                               .time = static_cast<int>(args.time),
                               .channels = static_cast<int>(args.channels)});
  });
  check_cuda(cudaGetLastError(), "launching an embedding");
}

void embedding_backward(CudaStream& stream, const EmbeddingBackward<CudaDevice>& args) {
  const int64_t rows = args.batch * args.time;
  const int64_t channels = args.channels;
  check_size("embedding_backward: dwte", args.dwte.size(), args.vocabulary * channels);
  check_size("embedding_backward: dwpe", args.dwpe.size(), args.time * channels);
  check_size("embedding_backward: head", args.head.size(), args.vocabulary * channels);
  check_size("embedding_backward: dx", args.dx.size(), rows * channels);
  check_size("embedding_backward: tokens", args.tokens.size(), rows);
  if (channels == 0 || args.vocabulary == 0) {
    return;
  }
  const CudaView<int32_t> scratch = stream.scratch<int32_t>(args.vocabulary + 1 + rows);
  const CudaView<int32_t> begins = scratch.subview({0, args.vocabulary + 1});
  const CudaView<int32_t> positions = scratch.subview({args.vocabulary + 1, scratch.size()});
  cuda::index_tokens(stream, {.vocabulary = args.vocabulary,
                              .tokens = args.tokens.subview({0, rows}),
                              .begins = begins,
                              .positions = positions});
  const bool vectorized =
      channels % 4 == 0 &&
      cuda::all_aligned16(args.dwte.data(), args.dwpe.data(), args.head.data(), args.dx.data());
  cuda::dispatch_width(vectorized, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    const int64_t slabs = (channels + 32 * kWidth - 1) / (32 * kWidth);
    const int64_t units = args.vocabulary * slabs;
    // With few units each has many positions, and a block of its own.
    const bool few = units < 16 * stream.facts().multiprocessors;
    cuda::launch_backward<kWidth>(stream, {.dwte = args.dwte.data(),
                                           .dwpe = args.dwpe.data(),
                                           .head = args.head.data(),
                                           .dx = args.dx.data(),
                                           .begins = begins.data(),
                                           .positions = positions.data(),
                                           .rows = rows,
                                           .time = args.time,
                                           .wpe_rows = args.dwpe.size() / channels,
                                           .channels = static_cast<int>(channels),
                                           .slabs = static_cast<int>(slabs),
                                           .units = units,
                                           .units_of_block = few ? 1 : cuda::kWarps,
                                           .accumulate = args.accumulate});
  });
}

}  // namespace lockstep
