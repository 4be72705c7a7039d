#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// Whether these start at multiples of 16 bytes: four floats can be moved at once.
inline bool aligned16(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}
template <class... Pointers>
bool all_aligned16(const Pointers*... pointers) {
  return (aligned16(pointers) && ...);
}

}  // namespace lockstep::cuda
