#include "comm/agreement.h"

#include <set>
#include <vector>

#include "core/base/error.h"
#include "wire.pb.h"

namespace lockstep {
namespace {

using Facts = google::protobuf::Map<std::string, std::string>;

std::string shown(const Facts& facts, const std::string& key) {
  constexpr size_t shown_bytes = 80;
  const auto found = facts.find(key);
  if (found == facts.end()) {
    return "no value";
  }
  const std::string& value = found->second;
  return value.size() <= shown_bytes ? fmt::format("'{}'", value)
                                     : fmt::format("'{}...'", value.substr(0, shown_bytes));
}

bool same(const Facts& a, const Facts& b, const std::string& key) {
  const auto in_a = a.find(key);
  const auto in_b = b.find(key);
  if (in_a == a.end() || in_b == b.end()) {
    return in_a == a.end() && in_b == b.end();
  }
  return in_a->second == in_b->second;
}

/// "rank 0 has 'a', ranks 1, 2 have 'b'".
std::string who_has_what(const std::vector<Facts>& by_rank, const std::string& key) {
  std::string text;
  std::vector<bool> told(by_rank.size());
  for (size_t first = 0; first < by_rank.size(); ++first) {
    if (told[first]) {
      continue;
    }
    std::string ranks;
    int count = 0;
    for (size_t rank = first; rank < by_rank.size(); ++rank) {
      if (!told[rank] && same(by_rank[first], by_rank[rank], key)) {
        told[rank] = true;
        ranks += fmt::format("{}{}", count++ == 0 ? "" : ", ", rank);
      }
    }
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : "; ", count == 1 ? "rank" : "ranks",
                        ranks, count == 1 ? "has" : "have", shown(by_rank[first], key));
  }
  return text;
}

}  // namespace

void check_agreement(Bootstrap& bootstrap, const std::map<std::string, std::string>& facts) {
  wire::Facts mine;
  mine.mutable_values()->insert(facts.begin(), facts.end());
  std::vector<Facts> by_rank;
  std::set<std::string> keys;
  for (const std::string& bytes : bootstrap.all_gather(mine.SerializeAsString())) {
    wire::Facts theirs;
    LOCKSTEP_CHECK(theirs.ParseFromString(bytes), "the facts of rank {} cannot be read",
                   by_rank.size());
    for (const auto& [key, value] : theirs.values()) {
      keys.insert(key);
    }
    by_rank.push_back(theirs.values());
  }
  for (const std::string& key : keys) {
    for (const Facts& other : by_rank) {
      if (!same(by_rank[0], other, key)) {
        throw RanksDisagreeError(
            "the ranks disagree on {}: {}; start all of them with the same build, configuration "
            "and data",
            key, who_has_what(by_rank, key));
      }
    }
  }
}

}  // namespace lockstep
