#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstdio>

#include "core/device/trace.h"

namespace lockstep {

TraceRange::TraceRange(const char* name) {
  nvtxRangePushA(name);
}

TraceRange::TraceRange(const char* name, int64_t index) {
  std::array<char, 64> text{};  // the tool copies it
  std::snprintf(text.data(), text.size(), "%s %lld", name, static_cast<long long>(index));
  nvtxRangePushA(text.data());
}

TraceRange::~TraceRange() {
  nvtxRangePop();
}

}  // namespace lockstep
