// The steps around the copies of sums that copy engines move between two ranks.

#include <cuda_runtime.h>

#include <algorithm>

#include "comm/cuda/peer_copies_kernels.h"
#include "comm/cuda/peer_sum.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

constexpr int kPacks = 4;  // of a thread at a time
constexpr int64_t kChunkPacks = int64_t{kPacks} * kPeerThreads;

__device__ uint64_t mark_of(uint32_t digest, uint32_t round) {
  return uint64_t{digest} << 32U | round;
}

__global__ void begin_kernel(const __grid_constant__ PeerCopy copy, int slot, uint32_t digest,
                             bool first) {
  const PeerSum& sum = copy.sum;
  const uint32_t round = copy.own->rounds + (first ? 1U : 0U);
  const int peer = 1 - sum.rank;
  if (first && sum.counts->ended == 0 &&
      !wait_for(&copy.own->freed, round - 1, sum.limit, peer, sum.bucket)) {
    give_up(sum);
  }
  if (sum.counts->ended != 0) {
    // The copies behind this go on nevertheless, over what the peer may still be reading.
    post(&copy.theirs->overrun, 1U);
    return;
  }
  copy.own->rounds = round;
  copy.own->marks[slot] = mark_of(digest, round);
  static_cast<volatile CollectiveWords*>(sum.limit.words)->bucket = sum.bucket;
}

/// Whether the peer is past this round, or at a sum by kernels that this rank has not come to. All
/// that the peer copies in a round has arrived before it gets there.
__device__ bool peer_has_gone_on(const PeerCopy& copy, uint32_t round) {
  const PeerSum& sum = copy.sum;
  const uint32_t next = sum.counts->sums + 1;
  const uint64_t header = seen(&sum.words[sum.rank]->headers[next % 2][1 - sum.rank]);
  return static_cast<uint32_t>(header) == next || has_come_to(seen(&copy.own->freed), round);
}

/// Waits for the peer's copy of a piece. False when the wait was ended.
__device__ bool await_piece(const PeerCopy& copy, int slot, const CopiedPiece& piece) {
  const int peer = 1 - copy.sum.rank;
  const WaitLimit& limit = copy.sum.limit;
  const uint32_t round = copy.own->rounds;
  const uint64_t mark = mark_of(piece.digest, round);
  const uint64_t start = nanoseconds();
  for (int turn = 1;; ++turn) {
    const bool look = turn % kTurnsBetweenLooks == 0;
    const bool gone_on = look && peer_has_gone_on(copy, round);
    const uint64_t arrived = seen(&copy.own->arrived[slot]);
    if (arrived == mark) {
      return true;
    }
    if (look && (gone_on || static_cast<uint32_t>(arrived) == round)) {
      report_other_sum(limit.words, peer, piece.bucket);
      return false;
    }
    if (look && must_end(limit, start, peer, piece.bucket)) {
      return false;
    }
  }
}

// One thread waits for all. Blocks that wait where they are to add, two on each multiprocessor,
// held up the copies that the other GPU waited for: up to 2 ms.
__global__ void await_kernel(const __grid_constant__ PeerCopy copy,
                             const __grid_constant__ CopiedPieces awaited) {
  for (int i = 0; i < awaited.count && copy.sum.counts->ended == 0; ++i) {
    if (!await_piece(copy, awaited.first_slot + i, awaited.pieces[i])) {
      give_up(copy.sum);
    }
  }
}

/// What one block adds at a time.
__device__ void add_chunk(float* window, const float* staging, Range piece, int64_t chunk) {
  const Range packs = packs_of(piece);
  const int64_t first = packs.begin + chunk * kChunkPacks + threadIdx.x;
  Pack own[kPacks];
  Pack theirs[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t pack = first + i * kPeerThreads;
    if (pack < packs.end) {
      own[i] = *reinterpret_cast<const Pack*>(window + pack * kPackElements);
      theirs[i] = load_shared_pack(staging + pack * kPackElements);
    }
  }
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t pack = first + i * kPeerThreads;
    if (pack < packs.end) {
      store_pack(window, pack, piece, sum_of(own[i], theirs[i]));
    }
  }
}

__host__ __device__ int64_t chunks_of(Range piece) {
  return (packs_of(piece).size() + kChunkPacks - 1) / kChunkPacks;
}

// The chunks of all pieces go round the blocks.
__global__ void __launch_bounds__(kPeerThreads, 2)
    add_kernel(const __grid_constant__ PeerCopy copy, const __grid_constant__ CopiedPieces added) {
  if (copy.sum.counts->ended != 0) {
    return;
  }
  int64_t chunk = blockIdx.x;  // this block's next one, counted from the first of the piece
  for (int i = 0; i < added.count; ++i) {
    const Range piece = added.pieces[i].range;
    const int64_t chunks = chunks_of(piece);
    for (; chunk < chunks; chunk += gridDim.x) {
      add_chunk(copy.sum.windows[copy.sum.rank], copy.staging, piece, chunk);
    }
    chunk -= chunks;
  }
}

__global__ void end_kernel(const __grid_constant__ PeerCopy copy, uint64_t busy_ns) {
  const PeerSum& sum = copy.sum;
  if (sum.counts->ended != 0) {
    return;
  }
  if (seen(&copy.own->overrun) != 0) {
    // What was added may be of another round, and the run is about to end.
    const uint64_t start = nanoseconds();
    while (!must_end(sum.limit, start, 1 - sum.rank, sum.bucket)) {
    }
    give_up(sum);
    return;
  }
  post(&copy.theirs->freed, copy.own->rounds);
  volatile CollectiveWords* words = sum.limit.words;
  sum.counts->busy_ns += busy_ns;
  words->busy_ns = sum.counts->busy_ns;
  words->bucket = -1;
}

void check_launch() {
  check_cuda(cudaGetLastError(), "enqueueing a step of an all-reduce by copies");
}

}  // namespace

void launch_copy_begin(CUstream_st* stream, const PeerCopy& copy, int slot, uint32_t digest,
                       bool first) {
  begin_kernel<<<1, 1, 0, stream>>>(copy, slot, digest, first);
  check_launch();
}

void launch_copy_add(CUstream_st* stream, const PeerCopy& copy, const CopiedPieces& pieces,
                     int most_blocks) {
  int64_t chunks = 0;
  for (int i = 0; i < pieces.count; ++i) {
    chunks += chunks_of(pieces.pieces[i].range);
  }
  await_kernel<<<1, 1, 0, stream>>>(copy, pieces);
  check_launch();
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(chunks, most_blocks));
  add_kernel<<<blocks, kPeerThreads, 0, stream>>>(copy, pieces);
  check_launch();
}

void launch_copy_end(CUstream_st* stream, const PeerCopy& copy, uint64_t busy_ns) {
  end_kernel<<<1, 1, 0, stream>>>(copy, busy_ns);
  check_launch();
}

}  // namespace lockstep
