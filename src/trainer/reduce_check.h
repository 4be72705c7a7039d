#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "core/base/arena_shard.h"
#include "core/base/error.h"

namespace lockstep {

/// Sums what a communicator sums once more, by the ring of the CPU over another transport, and
/// compares bit by bit: every way of summing gives the same bits. Slow, and waits for the device:
/// for a machine that one does not trust. One `before` for each range, then one `compare`. With
/// shards each rank compares what it owns; what is gathered then is not compared here, but by the
/// fingerprints of the parameters.
template <class Device>
class ReduceCheck {
 public:
  using Stream = typename Device::Stream;

  /// To check sums of windows of `options.window_elements` that `checked`, the transport's name,
  /// makes, of `shard` alone. Collective.
  ReduceCheck(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
              const CommunicatorOptions& options, std::string checked, const ArenaShard& shard = {})
      : checked_(std::move(checked)),
        shard_(shard),
        ring_(bootstrap, peers, control, other(options, checked_)) {}

  /// Takes what this rank brings to the sum of `range`, before that starts.
  void before(Stream& stream, View<Device, const float> window, Range range, int bucket) {
    copy_to_host(stream, ring_.window().subview(range).data(), window.subview(range));
    stream.synchronize();
    sums_.emplace_back(range, bucket);
  }

  /// Once the stream has passed all sums. Throws InternalError naming the first element that
  /// differs, and its bucket.
  void compare(Stream& stream, View<Device, const float> window) {
    for (const auto& [range, bucket] : sums_) {
      ring_.all_reduce(host_, range, bucket);
    }
    ring_.finish(host_);
    for (const auto& [range, bucket] : sums_) {
      std::vector<float> summed(static_cast<size_t>(range.size()));
      copy_to_host(stream, summed.data(), window.subview(range));
      stream.synchronize();
      compare(range, bucket, summed);
    }
    sums_.clear();
  }

 private:
  static CommunicatorOptions other(CommunicatorOptions options, const std::string& checked) {
    const bool shared = checked.find("shm") != std::string::npos;
    options.transport = shared ? TransportChoice::kSocket : TransportChoice::kAuto;
    return options;
  }

  void compare(Range range, int bucket, const std::vector<float>& summed) {
    const CpuView<float> expected = ring_.window().subview(range);
    for (int64_t i = 0; i < range.size(); ++i) {
      const float value = summed[static_cast<size_t>(i)];
      if (shard_.owns(range.begin + i) &&
          std::bit_cast<uint32_t>(value) != std::bit_cast<uint32_t>(expected[i])) {
        throw InternalError(
            "bucket {}: element {} of the gradients is {} summed over {} and {} over {}: one of "
            "the two cannot be trusted on this machine; name another by --transport",
            bucket, range.begin + i, value, checked_, expected[i], ring_.transport_name());
      }
    }
  }

  std::string checked_;
  ArenaShard shard_;
  Communicator<CpuDevice> ring_;
  CpuStream host_;
  std::vector<std::pair<Range, int>> sums_;
};

}  // namespace lockstep
