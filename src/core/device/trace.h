#pragma once

#include <cstdint>

namespace lockstep {

/// A named stretch of a thread's time, from construction to destruction, as a tool shows it that
/// listens to NVTX (Nsight Systems does); stretches nest. Without such a tool, and in a build
/// without CUDA, it costs a few nanoseconds. It stands where work is enqueued: replaying a graph
/// enqueues nothing anew and costs nothing, so trace a run with --no-cuda-graph.
class TraceRange {
 public:
  /// `name` must live as long.
  explicit TraceRange(const char* name);
  /// "name index".
  TraceRange(const char* name, int64_t index);
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
  TraceRange(TraceRange&&) = delete;
  TraceRange& operator=(TraceRange&&) = delete;
};

}  // namespace lockstep
