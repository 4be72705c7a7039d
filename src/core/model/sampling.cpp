#include "core/model/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"

namespace lockstep {
namespace {

constexpr uint64_t kStream = 0x73616d706c65;  // "sample": apart from initialisation and data order

}  // namespace

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     uint64_t index) {
  LOCKSTEP_CHECK(!logits.empty() && options.top_k >= 1, "{} logits, top {}", logits.size(),
                 options.top_k);
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const size_t kept =
      options.temperature <= 0 ? 1 : std::min(ids.size(), static_cast<size_t>(options.top_k));
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  std::partial_sort(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(kept), ids.end(),
      [&](int32_t a, int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  ids.resize(kept);
  if (kept == 1) {
    return ids[0];
  }

  std::vector<double> cumulative;
  double total = 0;
  for (const int32_t id : ids) {
    total += std::exp((static_cast<double>(logit(id)) - static_cast<double>(logit(ids[0]))) /
                      options.temperature);
    cumulative.push_back(total);
  }
  const double point = random_uniform(options.seed, kStream, index) * total;
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), point);
  return ids[std::min(static_cast<size_t>(found - cumulative.begin()), kept - 1)];
}

}  // namespace lockstep
