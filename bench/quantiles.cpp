#include "quantiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace lockstep {

Quantiles quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<size_t>(std::llround(q * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.5), at(0.95)};
}

Quantiles slowest(Bootstrap& bootstrap, Quantiles mine) {
  Quantiles worst;
  for (const std::string& text :
       bootstrap.all_gather(fmt::format("{} {}", mine.median, mine.p95))) {
    Quantiles theirs;
    std::sscanf(text.c_str(), "%lf %lf", &theirs.median, &theirs.p95);
    worst.median = std::max(worst.median, theirs.median);
    worst.p95 = std::max(worst.p95, theirs.p95);
  }
  return worst;
}

}  // namespace lockstep
