#pragma once

#include <optional>

#include "comm/communicator.h"
#include "core/base/range.h"
#include "core/model/gpt.h"
#include "trainer/bucket_plan.h"
#include "trainer/reduce_check.h"
#include "trainer/window_layout.h"

namespace lockstep {

/// When the gradients of a step are summed over the ranks.
enum class Reduction : uint8_t {
  kOverlapped,     ///< bucket by bucket, while backward goes on
  kAfterBackward,  ///< all at once, when backward is done
  kRecordAlone,    ///< the step record, when backward is done: ranks keep in step (benches only)
  kNone,           ///< never: the same hooks and buckets, nothing sent (benches only)
};

/// The one place where the model's gradient ranges meet the communicator: a range that is ready
/// joins a bucket, which is a view of the window, and a full bucket starts its sum. One call of
/// `on_ready`, the hook for the last micro-step's backward, and one call of `finish` per step.
template <class Device>
class Overlap {
 public:
  using Stream = typename Device::Stream;

  /// Sums the gradients in the communicator's window, and behind them the step record, which is in
  /// the first bucket; with shards each rank its own gradients alone, and the record by itself.
  /// `check`, if there is one, checks every sum. `communicator` and `check` must outlive it.
  Overlap(Communicator<Device>& communicator, const WindowLayout& layout, Reduction reduction,
          int64_t bucket_elements, ReduceCheck<Device>* check)
      : communicator_(&communicator),
        check_(check),
        record_(layout.record.range()),
        sharded_(layout.sharded()),
        reduction_(reduction),
        plan_(sharded_ ? layout.gradients.end : record_.end,
              reduction == Reduction::kAfterBackward ? record_.end + 1 : bucket_elements) {}

  /// The hook for the backward that completes the gradients. The record must be complete by then.
  typename Gpt<Device>::RangeReady on_ready(Stream& stream) {
    next_bucket_ = 0;
    reduce(stream, sharded_ ? std::optional(record_) : plan_.add(record_));
    return [this, &stream](Range ready) { reduce(stream, plan_.add(ready)); };
  }

  /// From here on the stream sees the sums over all ranks.
  void finish(Stream& stream) {
    reduce(stream, plan_.flush());
    if (reduction_ == Reduction::kRecordAlone) {
      communicator_->all_reduce(stream, record_, 0, SumLoad::kAlone);
    }
    if (reduction_ != Reduction::kNone) {
      communicator_->finish(stream);
      if (check_ != nullptr && sums_gradients()) {
        check_->compare(stream, communicator_->window());
      }
    }
  }

  bool sums_gradients() const {
    return reduction_ == Reduction::kOverlapped || reduction_ == Reduction::kAfterBackward;
  }

 private:
  void reduce(Stream& stream, std::optional<Range> bucket) {
    if (bucket && sums_gradients()) {
      if (check_ != nullptr) {
        check_->before(stream, communicator_->window(), *bucket, next_bucket_);
      }
      // The last range of a pass: backward is done.
      const SumLoad load = bucket->begin == 0 ? SumLoad::kAlone : SumLoad::kBeside;
      const int number = next_bucket_++;
      if (sharded_ && *bucket != record_) {
        communicator_->reduce_scatter(stream, *bucket, number, load);
      } else {
        communicator_->all_reduce(stream, *bucket, number, load);
      }
    }
  }

  Communicator<Device>* communicator_;
  ReduceCheck<Device>* check_;
  Range record_;
  bool sharded_;
  Reduction reduction_;
  BucketPlan plan_;
  int next_bucket_ = 0;
};

}  // namespace lockstep
