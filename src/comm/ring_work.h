#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// What a ring does with a range of everyone's window. Reduce-scatter and all-gather are the two
/// halves of an all-reduce, and may come apart: between them an element's owner (ArenaShard) may
/// make something else of its sum.
enum class RingWork : uint8_t {
  kAllReduce,      ///< everyone gets the sums
  kReduceScatter,  ///< the owner of an element gets its sum; elsewhere it is of no use
  kAllGather       ///< everyone gets what the owner of an element has
};

/// As messages name it.
constexpr std::string_view ring_work_name(RingWork work) {
  switch (work) {
    case RingWork::kAllReduce:
      return "all-reduce";
    case RingWork::kReduceScatter:
      return "reduce-scatter";
    case RingWork::kAllGather:
      return "all-gather";
  }
  return "";
}

}  // namespace lockstep
