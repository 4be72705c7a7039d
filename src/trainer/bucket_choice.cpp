#include "trainer/bucket_choice.h"

#include <cmath>

namespace lockstep {

int64_t choose_bucket_elements(const SumCost& cost, int64_t window_elements) {
  constexpr double kWorth = 4;  // times the smallest sum's time
  constexpr int64_t kLeast = (1 << 20) / sizeof(float);
  const double bytes = kWorth * cost.seconds * cost.bytes_per_second;
  const auto most = std::max<int64_t>(kLeast, window_elements / 4);
  return std::clamp<int64_t>(std::llround(bytes / sizeof(float)), kLeast, most);
}

}  // namespace lockstep
