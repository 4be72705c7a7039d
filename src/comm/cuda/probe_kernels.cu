#include <cuda_runtime_api.h>

#include <algorithm>

#include "comm/cuda/peer_sum.cuh"
#include "comm/cuda/probe_kernels.h"
#include "comm/cuda/wait.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

constexpr int kThreads = 512;
constexpr int64_t kVectors = kProbeWindowBytes / 16;

__device__ int64_t global_thread() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ int64_t all_threads() {
  return int64_t{gridDim.x} * blockDim.x;
}

__device__ uint4 vector_of(ProbeContent content, int64_t index) {
  return {probe_word(content, 4 * index), probe_word(content, 4 * index + 1),
          probe_word(content, 4 * index + 2), probe_word(content, 4 * index + 3)};
}

// Vectors inside the large piece are stored whole, the ragged pieces byte by byte.
__global__ void __launch_bounds__(kThreads) store_pieces_kernel(std::byte* window, uint32_t key) {
  for (int64_t i = global_thread(); i < kVectors; i += all_threads()) {
    if (16 * i >= kProbeBulk.begin && 16 * i < kProbeBulk.end) {
      reinterpret_cast<uint4*>(window)[i] = vector_of({key, key}, i);
      continue;
    }
    for (int64_t byte = 16 * i; byte < 16 * i + 16; ++byte) {
      const auto shift = static_cast<uint32_t>(8 * (byte % 4));
      if ((probe_mask(byte / 4) >> shift & 0xffU) != 0) {
        window[byte] = static_cast<std::byte>(probe_word(key, byte / 4) >> shift);
      }
    }
  }
  __threadfence_system();
}

__global__ void __launch_bounds__(kThreads) fill_window_kernel(std::byte* window, uint32_t key) {
  for (int64_t i = global_thread(); i < kVectors; i += all_threads()) {
    reinterpret_cast<uint4*>(window)[i] = vector_of({key, key}, i);
  }
}

__device__ void check_vector(const uint4& found, ProbeContent expected, int64_t i,
                             WindowCheck* check) {
  const uint4 right = vector_of(expected, i);
  const uint32_t words[4] = {found.x, found.y, found.z, found.w};
  const uint32_t wanted[4] = {right.x, right.y, right.z, right.w};
  for (int64_t word = 0; word < 4; ++word) {
    if (words[word] != wanted[word]) {
      const uint64_t wrong = static_cast<uint64_t>(4 * i + word) << 32U | words[word];
      atomicMin(reinterpret_cast<unsigned long long*>(&check->first), wrong);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    check_window_kernel(const std::byte* window, ProbeContent expected, WindowCheck* check) {
  for (int64_t i = global_thread(); i < kVectors; i += all_threads()) {
    check_vector(reinterpret_cast<const uint4*>(window)[i], expected, i, check);
  }
}

__global__ void __launch_bounds__(kThreads)
    copy_kernel(std::byte* to, const std::byte* from, int64_t vectors) {
  constexpr int kAtOnce = 4;
  const int64_t stride = all_threads();
  int64_t i = global_thread();
  for (; i + (kAtOnce - 1) * stride < vectors; i += kAtOnce * stride) {
    uint4 held[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      held[k] = reinterpret_cast<const uint4*>(from)[i + k * stride];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      reinterpret_cast<uint4*>(to)[i + k * stride] = held[k];
    }
  }
  for (; i < vectors; i += stride) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
}

constexpr int kLiveThreads = 128;
constexpr int64_t kMessageOffset = 128;  // the flag has a line of its own

__device__ uint4 message_of(int writer, int owner, uint32_t epoch, int64_t index) {
  const uint32_t key = probe_key(writer, owner, epoch);
  return vector_of({key, key}, index);
}

// Waits for exactly this value: a flag that is left over is none.
template <class Flag>
__device__ bool comes(const Flag* flag, Flag value, uint64_t timeout_ns) {
  constexpr int kTurns = 64;  // between looks at the clock
  const uint64_t start = nanoseconds();
  do {
    for (int turn = 0; turn < kTurns; ++turn) {
      if (seen(flag) == value) {
        return true;
      }
    }
  } while (nanoseconds() - start < timeout_ns);
  return false;
}

__device__ void check_message(const LivePlay& play, const std::byte* slot, uint32_t round,
                              int64_t index, LiveResult* result) {
  const uint4 found = reinterpret_cast<const uint4*>(slot + kMessageOffset)[threadIdx.x];
  const uint4 right = message_of(play.peer_rank, play.own_rank, play.epoch + round, index);
  const uint32_t words[4] = {found.x, found.y, found.z, found.w};
  const uint32_t wanted[4] = {right.x, right.y, right.z, right.w};
  for (uint32_t word = 0; word < 4; ++word) {
    if (words[word] != wanted[word] && atomicAdd(&result->wrong, 1U) == 0) {
      result->wrong_round = round;
      result->wrong_word = static_cast<uint32_t>(4 * index) + word;
      result->found = words[word];
    }
  }
}

__global__ void __launch_bounds__(kLiveThreads)
    play_live_kernel(LivePlay play, LiveResult* results) {
  __shared__ bool came;
  std::byte* const own = play.own + blockIdx.x * kLiveSlotBytes;
  std::byte* const peer = play.peer + blockIdx.x * kLiveSlotBytes;
  LiveResult& result = results[blockIdx.x];
  const int64_t index = kProbeBulk.begin / 16 + global_thread();
  const uint32_t flags = play.epoch;  // so that no play takes another's flags for its own
  uint64_t start = 0;

  const auto send = [&](uint32_t round) {
    reinterpret_cast<uint4*>(peer + kMessageOffset)[threadIdx.x] =
        message_of(play.own_rank, play.peer_rank, play.epoch + round, index);
    __syncthreads();
    if (threadIdx.x == 0) {
      post(reinterpret_cast<uint32_t*>(peer), flags + round);
    }
  };
  const auto receive = [&](uint32_t round) {
    if (threadIdx.x == 0) {
      came = comes(reinterpret_cast<const uint32_t*>(own), flags + round, play.timeout_ns);
    }
    __syncthreads();
    if (!came) {
      return false;
    }
    check_message(play, own, round, index, &result);
    __syncthreads();  // all have read before the answer lets the other side write again
    return true;
  };

  for (uint32_t round = 1; round <= play.rounds; ++round) {
    if (play.first) {
      send(round);
    }
    if (!receive(round)) {
      return;
    }
    if (!play.first) {
      send(round);
    }
    if (threadIdx.x == 0) {
      result.seen = round;
      start = round == 1 ? nanoseconds() : start;
    }
  }
  if (threadIdx.x == 0) {
    result.nanoseconds = nanoseconds() - start;
  }
}

// Few, so that waiting for one word is no load, and enough to read a window while it is copied.
constexpr unsigned kArrivalBlocks = 32;

// As the sums read what copies brought.
__device__ uint4 shared_vector(const std::byte* window, int64_t i) {
  const Pack pack = load_shared_pack(reinterpret_cast<const float*>(window) + kPackElements * i);
  return {__float_as_uint(pack.x), __float_as_uint(pack.y), __float_as_uint(pack.z),
          __float_as_uint(pack.w)};
}

// What is written last is read first: there a mark that came early finds most missing.
__global__ void __launch_bounds__(kThreads)
    await_window_kernel(const __grid_constant__ Arrival arrival, ArrivalCheck* check) {
  __shared__ bool came;
  if (threadIdx.x == 0) {
    if (atomicAdd(&check->begun, 1U) == gridDim.x - 1) {
      post(arrival.begun, arrival.epoch);
    }
    came = comes(arrival.mark, arrival.awaited, arrival.timeout_ns);
    if (!came) {
      atomicAdd(&check->late, 1U);
    }
  }
  __syncthreads();
  if (!came) {
    return;
  }
  for (int64_t i = kVectors - 1 - global_thread(); i >= 0; i -= all_threads()) {
    check_vector(shared_vector(arrival.window, i), arrival.expected, i, &check->window);
  }
}

unsigned blocks_of(const CudaStream& stream) {
  return static_cast<unsigned>(stream.facts().multiprocessors);
}

}  // namespace

void store_pieces(CudaStream& stream, std::byte* window, uint32_t key) {
  store_pieces_kernel<<<2 * blocks_of(stream), kThreads, 0, stream.handle()>>>(window, key);
  check_cuda(cudaGetLastError(), "storing into a window of the peer probe");
}

void fill_window(CudaStream& stream, std::byte* window, uint32_t key) {
  fill_window_kernel<<<2 * blocks_of(stream), kThreads, 0, stream.handle()>>>(window, key);
  check_cuda(cudaGetLastError(), "filling a window of the peer probe");
}

void check_window(CudaStream& stream, const std::byte* window, ProbeContent expected,
                  WindowCheck* check) {
  check_window_kernel<<<2 * blocks_of(stream), kThreads, 0, stream.handle()>>>(window, expected,
                                                                               check);
  check_cuda(cudaGetLastError(), "checking a window of the peer probe");
}

void copy_by_kernel(CudaStream& stream, std::byte* to, const std::byte* from, int64_t bytes) {
  copy_kernel<<<blocks_of(stream), kThreads, 0, stream.handle()>>>(to, from, bytes / 16);
  check_cuda(cudaGetLastError(), "copying to another GPU");
}

void play_live(CudaStream& stream, const LivePlay& play, LiveResult* results) {
  play_live_kernel<<<static_cast<unsigned>(play.blocks), kLiveThreads, 0, stream.handle()>>>(
      play, results);
  check_cuda(cudaGetLastError(), "starting the peer probe's ping-pong");
}

void await_window(CudaStream& stream, const Arrival& arrival, ArrivalCheck* check) {
  const unsigned blocks = std::min(kArrivalBlocks, blocks_of(stream));
  await_window_kernel<<<blocks, kThreads, 0, stream.handle()>>>(arrival, check);
  check_cuda(cudaGetLastError(), "waiting for a window of the peer probe");
}

}  // namespace lockstep
