#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/cuda/copy_pieces.h"
#include "comm/cuda/peer_copies_kernels.h"
#include "comm/cuda/peer_words.h"
#include "comm/sum_load.h"
#include "core/base/range.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// As before the first round.
std::unique_ptr<CopyWords> first_copy_words();

/// A rank's memory for copies, where this process sees it.
struct CopyArea {
  CopyWords* words;
  float* staging;  ///< as large as the window
};

/// Sums of two ranks for which no multiprocessor is taken while backward runs: a product that fills
/// the GPU takes nearly twice as long when a single one of them is missing. Copy engines send each
/// rank's range to the other rank's staging memory, and what has come is added when backward is
/// done. In between there is a kernel of one thread a sum, in the stream that computes itself: none
/// is ever beside another. That a mark copied behind data is not seen before the data is proven by
/// the peer probe, at ProbeStage::kLiveCopies.
///
/// The sums up to one finish() are a round. Both ranks call the same with the same arguments. What
/// is enqueued may be captured into graphs, several of which may share this. One stream computes.
///
/// No order in which the driver runs what may run side by side can lock the ranks up: what adds a
/// piece is enqueued behind this rank's own copy of it, and waits for the peer's copy alone. So of
/// two ranks that wait, the one at the earlier piece has the other's.
class PeerCopies {
 public:
  /// Collective. `everyone` as PeerAllReduce has it: the window is zero and idle, as on the peer,
  /// and stays so. All memory outlives this and was written by nobody yet.
  PeerCopies(Bootstrap& bootstrap, const PeerSum& everyone, int64_t window_elements, CopyArea own,
             CopyArea theirs);

  /// Whether there were sums since the last finish().
  bool under_way() const { return slots_ > 0; }
  /// Whether the round has room for another one.
  bool has_room() const { return slots_ + kMostPieces <= kCopySlots; }

  /// Begins the sum of `range`, which is not empty, behind everything on `stream` so far; until
  /// finish() it must not be touched. There must be room.
  void push(CudaStream& stream, Range range, int bucket, SumLoad load);

  /// From here on `stream` sees the sums of the round. Nothing is enqueued without any.
  void finish(CudaStream& stream);

 private:
  /// Pieces that are added by one kernel, which has to wait for the last one's copy.
  struct Group {
    CudaEvent copied;
    CopiedPieces pieces{};
    bool grows = false;
  };

  double seconds_to_copy(Bootstrap& bootstrap, int64_t elements);
  void copy_piece(CudaStream& copies, Range piece, int mark);
  Group& group_for(SumLoad load);

  PeerCopy copy_{};  ///< all but the bucket
  float* their_staging_;
  // Pieces of a sum go by turns: one's copy hides what surrounds the other's.
  std::array<CudaStream, 2> copies_{CudaStream(Precision::kFp32, StreamPriority::kHigh),
                                    CudaStream(Precision::kFp32, StreamPriority::kHigh)};
  CudaEvent begun_;
  double ns_per_element_ = 0;
  // Of the round.
  std::vector<Group> groups_;  ///< the first `used_`; the others are of longer rounds
  size_t used_ = 0;
  int slots_ = 0;
  int64_t elements_ = 0;
};

}  // namespace lockstep
