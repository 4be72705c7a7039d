#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/range.h"
#include "kernels/fingerprint.h"

namespace lockstep {

/// What ranks tell each other in a step, as floats that are summed with the gradients. It lies
/// right behind the gradient arena, so it travels in the first bucket and costs no collective of
/// its own. Sums are equal on all ranks, so all of them decide alike; facts that must be exact have
/// slots that one rank fills while the others hold zero.
class StepRecord {
 public:
  /// The record of `micro_batches` per step over all of `ranks`, from element `begin` of the
  /// window.
  StepRecord(int64_t begin, int64_t micro_batches, int ranks)
      : begin_(begin), losses_(micro_batches), ranks_(ranks) {}

  /// Elements of the window.
  Range range() const {
    return {begin_, begin_ + fingerprints_begin() + ranks_ * kFingerprintPieces};
  }
  /// Where the mean loss of micro-batch number `index` of the step goes.
  Range loss(int64_t index) const { return {begin_ + index, begin_ + index + 1}; }

  /// Where the fingerprint of a rank's parameters goes.
  Range fingerprint(int rank) const {
    const int64_t begin = begin_ + fingerprints_begin() + rank * kFingerprintPieces;
    return {begin, begin + kFingerprintPieces};
  }

  /// What a rank puts in before its losses.
  struct Flags {
    bool stop = false;         ///< it was asked to stop
    bool save_failed = false;  ///< it could not write a checkpoint
  };
  /// `behind_less_beside`: of ScheduleTrial.
  std::vector<float> start(Flags mine, float behind_less_beside = 0) const {
    std::vector<float> record(static_cast<size_t>(range().size()), 0.0F);
    record[stop_slot()] = mine.stop ? 1.0F : 0.0F;
    record[save_failed_slot()] = mine.save_failed ? 1.0F : 0.0F;
    record[trial_slot()] = behind_less_beside;
    return record;
  }

  /// What came out of the sum.
  Flags flags(const std::vector<float>& sum) const {
    return {sum[stop_slot()] != 0, sum[save_failed_slot()] != 0};
  }
  /// The mean of all ranks.
  double behind_less_beside(const std::vector<float>& sum) const {
    return static_cast<double>(sum[trial_slot()]) / ranks_;
  }
  /// By rank.
  std::vector<uint64_t> fingerprints(const std::vector<float>& sum) const {
    std::vector<uint64_t> all;
    all.reserve(static_cast<size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      all.push_back(fingerprint_of(sum.data() + fingerprint(rank).begin - begin_));
    }
    return all;
  }
  /// The mean over the global batch: micro-batches are equal in size.
  double mean_loss(const std::vector<float>& sum) const {
    double total = 0;
    for (int64_t i = 0; i < losses_; ++i) {
      total += static_cast<double>(sum[static_cast<size_t>(i)]);
    }
    return total / static_cast<double>(losses_);
  }

 private:
  static constexpr int64_t kFacts = 3;
  size_t stop_slot() const { return static_cast<size_t>(losses_); }
  size_t save_failed_slot() const { return static_cast<size_t>(losses_) + 1; }
  size_t trial_slot() const { return static_cast<size_t>(losses_) + 2; }

  int64_t fingerprints_begin() const { return losses_ + kFacts; }

  int64_t begin_;
  int64_t losses_;
  int ranks_;
};

}  // namespace lockstep
