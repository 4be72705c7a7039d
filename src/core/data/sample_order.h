#pragma once

#include <cstdint>

namespace lockstep {

/// Which window of a token stream is sample number `index` of a run: a pure function of (seed,
/// index), whatever the number of ranks. index = step * global_batch + position in the global
/// batch.
///
/// Each epoch cuts the stream into windows of block_size + 1 tokens (the next window shares one),
/// starting at a random phase of the epoch, and visits every window once in a random order:
/// sampling without replacement that needs no list.
class SampleOrder {
 public:
  /// `tokens` > block_size, else InternalError (Dataset has checked).
  SampleOrder(uint64_t seed, int64_t tokens, int64_t block_size);

  /// First token of the sample's inputs; its targets start one later.
  int64_t offset(int64_t index) const;

 private:
  uint64_t seed_;
  int64_t tokens_;
  int64_t block_size_;
  int64_t windows_;
};

/// The evaluation windows: `count` of them spread evenly over a split, the same in every evaluation
/// of every run.
int64_t evaluation_offset(int64_t index, int64_t count, int64_t tokens, int64_t block_size);

}  // namespace lockstep
