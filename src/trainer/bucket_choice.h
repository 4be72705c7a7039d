#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "comm/bootstrap.h"
#include "comm/communicator.h"

namespace lockstep {

/// What a sum costs: `seconds` for the smallest, and the rate at which larger ones grow.
struct SumCost {
  double seconds = 0;
  double bytes_per_second = 0;
};

/// The bucket for sums of this cost: four fifths of a bucket's time go to its bytes, so that small
/// buckets do not waste the link, and no larger, so that the first sum starts early and the last,
/// which nothing hides, is short. At least 1 MiB, at most a quarter of the window.
int64_t choose_bucket_elements(const SumCost& cost, int64_t window_elements);

/// Times sums over the communicator, whose window's first `window` elements hold zeros and hold
/// them afterwards. Collective: all ranks get the slowest rank's figures.
template <class Device>
SumCost measure_sum_cost(Bootstrap& bootstrap, typename Device::Stream& stream,
                         Communicator<Device>& communicator, int64_t window) {
  constexpr int kSums = 10;
  const int64_t few = std::min<int64_t>(window, 1024);
  std::array<double, 2> seconds{};
  for (size_t which = 0; which < seconds.size(); ++which) {
    const Range range{0, which == 0 ? few : window};
    const auto sums = [&] {
      for (int i = 0; i < kSums; ++i) {
        communicator.all_reduce(stream, range, 0);
        communicator.finish(stream);
      }
    };
    sums();  // the first of a kind may allocate
    typename Device::Graph graph(stream, sums);
    stream.synchronize();
    bootstrap.barrier();
    typename Device::Event start;
    typename Device::Event end;
    start.record(stream);
    graph.launch(stream);
    end.record(stream);
    end.synchronize();
    seconds[which] = end.seconds_since(start) / kSums;
    communicator.take_times();
  }
  for (const std::string& text :
       bootstrap.all_gather(fmt::format("{} {}", seconds[0], seconds[1]))) {
    double least = 0;
    double whole = 0;
    std::sscanf(text.c_str(), "%lf %lf", &least, &whole);
    seconds = {std::max(seconds[0], least), std::max(seconds[1], whole)};
  }
  const auto bytes = static_cast<double>(window - few) * sizeof(float);
  // Where noise is as long as the sums, their difference says nothing.
  return {seconds[0], bytes / std::max({seconds[1] - seconds[0], seconds[1] / 10, 1e-9})};
}

/// A size of buckets, with the cost that it was chosen for, if it was.
struct BucketSize {
  int64_t elements = 1;
  std::optional<SumCost> cost = {};
};

/// The size that is `asked` for, or with 0 the one that suits what sums of up to `window` elements
/// cost here. Collective.
template <class Device>
BucketSize bucket_size(int64_t asked, Bootstrap& bootstrap, typename Device::Stream& stream,
                       Communicator<Device>& communicator, int64_t window) {
  if (asked > 0 || bootstrap.world_size() == 1) {
    return {std::max<int64_t>(1, asked)};
  }
  const SumCost cost = measure_sum_cost<Device>(bootstrap, stream, communicator, window);
  return {choose_bucket_elements(cost, window), cost};
}

}  // namespace lockstep
