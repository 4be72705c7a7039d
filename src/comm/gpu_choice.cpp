#include "comm/gpu_choice.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse(const std::vector<VisibleGpus>& ranks, size_t first, size_t rank) {
  size_t local = 0;
  std::set<std::string> visible;
  for (const VisibleGpus& other : ranks) {
    if (other.host_id == ranks[rank].host_id) {
      ++local;
      visible.insert(other.uuids.begin(), other.uuids.end());
    }
  }
  throw UsageError(
      "{} ranks on host {} with {} visible GPU{}: ranks {} and {} would share one. Start at most "
      "{} there, or give --share-gpu when they should",
      local, ranks[rank].host, visible.size(), visible.size() == 1 ? "" : "s", first, rank,
      visible.size());
}

}  // namespace

std::vector<int> choose_gpus(const std::vector<VisibleGpus>& ranks, bool share) {
  std::map<std::pair<std::string, std::string>, size_t> taken;  // host and GPU, by the first rank
  std::map<std::string, size_t> local_ranks;
  std::vector<int> choices;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const VisibleGpus& mine = ranks[rank];
    LOCKSTEP_CHECK(!mine.uuids.empty(), "rank {} sees no GPU", rank);
    const size_t local_rank = local_ranks[mine.host_id]++;
    const auto is_free = [&](const std::string& uuid) {
      return taken.count({mine.host_id, uuid}) == 0;
    };
    const auto found = std::find_if(mine.uuids.begin(), mine.uuids.end(), is_free);
    auto choice = static_cast<size_t>(found - mine.uuids.begin());
    if (found == mine.uuids.end()) {
      choice = local_rank % mine.uuids.size();
      if (!share) {
        refuse(ranks, taken.at({mine.host_id, mine.uuids[choice]}), rank);
      }
    }
    taken.emplace(std::pair{mine.host_id, mine.uuids[choice]}, rank);
    choices.push_back(static_cast<int>(choice));
  }
  return choices;
}

}  // namespace lockstep
