#pragma once

#include <array>
#include <span>

namespace lockstep::layout {

/// How many passes the 32 banks of shared memory need for one warp-wide access, given each lane's
/// offset in floats and its width in floats (1, 2 or 4). A warp is served in phases of 128 bytes:
/// 32 lanes of one float, 16 of two or 8 of four. Within a phase, lanes that want different words
/// of one bank wait for each other; the same word is broadcast. Returns the worst phase: 1 is
/// conflict-free.
constexpr int bank_passes(std::span<const int, 32> offsets, int width) {
  const int lanes_per_phase = 32 / width;
  int worst = 1;
  for (int phase = 0; phase < 32; phase += lanes_per_phase) {
    std::array<std::array<int, 32>, 32> words{};
    std::array<int, 32> distinct{};
    for (int lane = phase; lane < phase + lanes_per_phase; ++lane) {
      for (int i = 0; i < width; ++i) {
        const int word = offsets[static_cast<size_t>(lane)] + i;
        const auto bank = static_cast<size_t>(word % 32);
        bool seen = false;
        for (int j = 0; j < distinct[bank]; ++j) {
          seen = seen || words[bank][static_cast<size_t>(j)] == word;
        }
        if (!seen) {
          words[bank][static_cast<size_t>(distinct[bank]++)] = word;
        }
      }
    }
    for (const int count : distinct) {
      worst = count > worst ? count : worst;
    }
  }
  return worst;
}

}  // namespace lockstep::layout
