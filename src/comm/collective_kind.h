#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// What ranks do together with a range of everyone's window. Reduce-scatter and all-gather are the
/// two halves of an all-reduce, and may come apart: between them an element's owner (ArenaShard)
/// may make something else of its sum.
enum class CollectiveKind : uint8_t {
  kAllReduce,      ///< everyone gets the sums
  kReduceScatter,  ///< the owner of an element gets its sum; elsewhere it is of no use
  kAllGather       ///< everyone gets what the owner of an element has
};

/// As messages name it.
constexpr std::string_view collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
  }
  return "";
}

}  // namespace lockstep
