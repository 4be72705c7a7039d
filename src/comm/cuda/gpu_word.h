#pragma once

#include <chrono>

namespace lockstep {

// How a host follows what its GPU shows in page-locked memory (CollectiveWords).

/// Between looks. Death of a rank is known after a heartbeat's time: this adds little to that.
inline constexpr std::chrono::milliseconds kGpuLook{2};

/// The GPU writes the words too: each is read and written whole, at its own time.
template <class T>
T load_word(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <class T>
void store_word(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

}  // namespace lockstep
