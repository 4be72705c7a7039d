#include "core/device/trace.h"

namespace lockstep {

TraceRange::TraceRange(const char* /*name*/) {}
TraceRange::TraceRange(const char* /*name*/, int64_t /*index*/) {}
TraceRange::~TraceRange() = default;

}  // namespace lockstep
