#pragma once

#include "core/device/cpu_device.h"

namespace lockstep {

/// Memory of the calling thread, aligned to a page, with what it held before. It only grows: a
/// training step allocates nothing. Valid until the thread asks again.
inline float* thread_scratch(int64_t floats) {
  thread_local CpuBuffer<float> buffer;
  if (buffer.size() < floats) {
    buffer = CpuBuffer<float>();  // frees the old memory before it asks for the new
    buffer = CpuBuffer<float>(floats);
  }
  return buffer.view().data();
}

}  // namespace lockstep
