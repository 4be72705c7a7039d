#pragma once

#include <vector>

#include "comm/bootstrap.h"

namespace lockstep {

struct Quantiles {
  double median = 0;
  double p95 = 0;
};

/// Of at least one value.
Quantiles quantiles(std::vector<double> values);

/// The largest of all ranks' medians, and of their 95th percentiles. Collective.
Quantiles slowest(Bootstrap& bootstrap, Quantiles mine);

}  // namespace lockstep
