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
  int64_t vocabulary;
  int64_t wpe_rows;
  int channels;
  bool accumulate;
  int slabs = 0;  // to a row
  int64_t units = 0;
  int units_of_block = 0;
};

template <int kWidth>
__device__ void put(float* to, Pack<kWidth> value, bool accumulate) {
  if (accumulate) {
    const Pack<kWidth> before = load_pack<kWidth>(to);
    for_each_lane<kWidth>([&](int i) { value[i] = before[i] + value[i]; });
  }
  store_pack(to, value);
}

/// A lane's part of a slab: kPacks packs of one symbol's row, 32 packs apart.
template <int kWidth_, int kPacks>
struct Slab {
  static constexpr int kWidth = kWidth_;
  static constexpr int kChannels = 32 * kPacks * kWidth;
  Pack<kWidth> packs[kPacks];

  /// body(i, channel) for each pack of the lane that exists.
  template <class Body>
  static __device__ void for_each_pack(const Backward& args, int64_t unit, Body body) {
    const int first = static_cast<int>(unit % args.slabs) * kChannels +
                      static_cast<int>(threadIdx.x) % 32 * kWidth;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (first + i * 32 * kWidth < args.channels) {
        body(i, first + i * 32 * kWidth);
      }
    }
  }

  __device__ void add(const Slab& other) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      for_each_lane<kWidth>([&](int j) { packs[i][j] += other.packs[i][j]; });
    }
  }

  /// Adds the rows of dx at positions[begin … end), one after the other.
  __device__ void add_positions(const Backward& args, int64_t unit, int begin, int end) {
    constexpr int kUnroll = 8 / kPacks;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int at = begin; at < end; at += 32) {
      const int count = min(32, end - at);
      const int own = lane < count ? args.positions[at + lane] : 0;
#pragma unroll kUnroll
      for (int k = 0; k < count; ++k) {
        const float* const dx =
            args.dx + static_cast<int64_t>(__shfl_sync(kAllLanes, own, k)) * args.channels;
        for_each_pack(args, unit, [&](int i, int channel) {
          const Pack<kWidth> row = load_pack<kWidth>(dx + channel);
          for_each_lane<kWidth>([&](int j) { packs[i][j] += row[j]; });
        });
      }
    }
  }
};

/// A unit is a slab of one symbol's row. Units with few positions are taken by a warp each, then
/// those with many by the whole block, each warp a run of the positions.
template <class Slab>
__global__ void __launch_bounds__(kWarps * 32) dwte_kernel(Backward args) {
  __shared__ Slab sums[kWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * args.units_of_block;
  const int64_t last = min(args.units, first + args.units_of_block);
  const auto finish = [&](int64_t unit, Slab& sum) {
    const int64_t row = unit / args.slabs * args.channels;
    Slab head = {};
    Slab::for_each_pack(args, unit, [&](int i, int channel) {
      head.packs[i] = load_pack<Slab::kWidth>(args.head + row + channel);
    });
    head.add(sum);
    Slab::for_each_pack(args, unit, [&](int i, int channel) {
      put(args.dwte + row + channel, head.packs[i], args.accumulate);
    });
  };

  int count = 0;
  if (first + warp < last) {
    const int64_t unit = first + warp;
    const int begin = args.begins[unit / args.slabs];
    const int end = args.begins[unit / args.slabs + 1];
    count = end - begin;
    if (count <= kShort) {
      Slab sum = {};
      sum.add_positions(args, unit, begin, end);
      finish(unit, sum);
    }
  }
  if (__syncthreads_or(count > kShort) == 0) {
    return;
  }
  for (int64_t unit = first; unit < last; ++unit) {
    const int begin = args.begins[unit / args.slabs];
    const int64_t positions = args.begins[unit / args.slabs + 1] - begin;
    if (positions <= kShort) {
      continue;
    }
    Slab sum = {};
    sum.add_positions(args, unit, begin + static_cast<int>(positions * warp / kWarps),
                      begin + static_cast<int>(positions * (warp + 1) / kWarps));
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0) {
      for (int other = 1; other < kWarps; ++other) {
        sum.add(sums[other][lane]);
      }
      finish(unit, sum);
    }
    __syncthreads();  // the next unit writes where this one reads
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

template <int kWidth, int kPacks>
void launch_dwte(CudaStream& stream, Backward args, int units_of_block) {
  using Part = Slab<kWidth, kPacks>;
  args.slabs = (args.channels + Part::kChannels - 1) / Part::kChannels;
  args.units = args.vocabulary * args.slabs;
  args.units_of_block = units_of_block;
  const int64_t blocks = (args.units + units_of_block - 1) / units_of_block;
  dwte_kernel<Part><<<static_cast<unsigned>(blocks), kWarps * 32, 0, stream.handle()>>>(args);
  check_cuda(cudaGetLastError(), "launching the token embedding's gradient");
}

template <int kWidth>
void launch_backward(CudaStream& stream, const Backward& args) {
  // Few symbols have many positions each: then every unit, as narrow as it can be, has a block of
  // its own. Many symbols have few: wide units keep more reads in flight.
  const bool few = args.vocabulary < 4 * stream.facts().multiprocessors;
  if (few) {
    launch_dwte<kWidth, 1>(stream, args, 1);
  } else {
    launch_dwte<kWidth, kWidth == 4 ? 3 : 1>(stream, args, kWarps);
  }
  constexpr int64_t kThreads = kWarps * 32;
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
    cuda::launch_backward<decltype(width)::value>(stream, {.dwte = args.dwte.data(),
                                                           .dwpe = args.dwpe.data(),
                                                           .head = args.head.data(),
                                                           .dx = args.dx.data(),
                                                           .begins = begins.data(),
                                                           .positions = positions.data(),
                                                           .rows = rows,
                                                           .time = args.time,
                                                           .vocabulary = args.vocabulary,
                                                           .wpe_rows = args.dwpe.size() / channels,
                                                           .channels = static_cast<int>(channels),
                                                           .accumulate = args.accumulate});
  });
}

}  // namespace lockstep
