#include "trainer/gpu_choice.h"

#include <algorithm>
#include <cstddef>

#include "core/base/error.h"

namespace lockstep {

void check_gpu_choices(const std::vector<GpuChoice>& ranks, bool share) {
  for (size_t rank = 0; rank < ranks.size() && !share; ++rank) {
    const GpuChoice& mine = ranks[rank];
    const auto same = [&](const GpuChoice& other) {
      return other.host_id == mine.host_id && other.uuid == mine.uuid;
    };
    const auto first = std::find_if(ranks.begin(), ranks.end(), same) - ranks.begin();
    if (static_cast<size_t>(first) == rank) {
      continue;
    }
    const auto local = std::count_if(ranks.begin(), ranks.end(), [&](const GpuChoice& other) {
      return other.host_id == mine.host_id;
    });
    throw UsageError(
        "{} ranks on host {} with {} visible GPU{}: ranks {} and {} would share one. Start at most "
        "{} there, or give --share-gpu when they should",
        local, mine.host, mine.visible, mine.visible == 1 ? "" : "s", first, rank, mine.visible);
  }
}

}  // namespace lockstep
