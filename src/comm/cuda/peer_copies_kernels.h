#pragma once

#include <cstdint>

#include "comm/cuda/peer_words.h"
#include "core/base/range.h"

struct CUstream_st;

namespace lockstep {

/// The pieces that a round may have, and those that one kernel adds.
inline constexpr int kCopySlots = 256;
inline constexpr int kMostAddedPieces = 64;

/// What two ranks tell each other about copies: each rank's, in memory that both reach. A mark is
/// a round in its lower half, counted modulo 2^32, and in its upper what is summed.
struct CopyWords {
  uint64_t marks[kCopySlots];    ///< own: of each sum, in its first piece's slot; copied behind all
  uint64_t arrived[kCopySlots];  ///< by the peer's copies: the mark of the piece that is here
  uint32_t rounds;               ///< own: begun so far
  uint32_t freed;    ///< raised by the peer: rounds of which it has read all that it was sent
  uint32_t overrun;  ///< by the peer: not 0 once its copies do not wait for `freed` any more
};

/// What the kernels around copies know, by value.
struct PeerCopy {
  PeerSum sum;           ///< of which no range is used; of two ranks
  CopyWords* own;        ///< this rank's
  CopyWords* theirs;     ///< the peer's
  const float* staging;  ///< this rank's: where the peer's copies go, laid out as the window
};

/// A part of a sum's range that one copy moves.
struct CopiedPiece {
  Range range;
  uint32_t digest;  ///< sum_digest of the whole sum
  int bucket;
};

/// Pieces that are added together, in this order; their slots are counted on from the first's.
struct CopiedPieces {
  int first_slot;
  int count;
  CopiedPiece pieces[kMostAddedPieces];
};

// Each enqueues one step of a round, in the order of a round; the same on both ranks. Once a wait
// has ended they touch neither the window nor what the peer waits for.

/// Begins a sum: writes its mark, for what is copied behind this. The `first` of a round waits
/// until the peer has read what it was sent in the round before.
void launch_copy_begin(CUstream_st* stream, const PeerCopy& copy, int slot, uint32_t digest,
                       bool first);
/// Waits for the peer's copies of the pieces and adds them to the window, which this rank's own
/// copies have read by then. `most_blocks`: of kPeerThreads threads.
void launch_copy_add(CUstream_st* stream, const PeerCopy& copy, const CopiedPieces& pieces,
                     int most_blocks);
/// Ends a round: tells the peer that its pieces are read, and shows the host `busy_ns` more.
void launch_copy_end(CUstream_st* stream, const PeerCopy& copy, uint64_t busy_ns);

}  // namespace lockstep
