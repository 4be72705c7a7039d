#pragma once

// Which element of a matrix each lane and register of mma.sync.m16n8k8 (TF32) holds; PTX ISA,
// "Matrix Fragments for mma.m16n8k8". fragment_probe finds the same maps on the hardware with
// one-hot inputs.

namespace lockstep::layout {

/// Row and column inside a fragment's matrix.
struct Coordinate {
  int row = 0;
  int column = 0;
  friend constexpr bool operator==(const Coordinate&, const Coordinate&) = default;
};

inline constexpr int kMmaM = 16;
inline constexpr int kMmaN = 8;
inline constexpr int kMmaK = 8;

/// A (16 x 8), four registers a lane: a0 (g, t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4).
constexpr Coordinate mma_a(int lane, int index) {
  return {lane / 4 + 8 * (index & 1), lane % 4 + 4 * (index >> 1)};
}

/// B (8 x 8), two registers a lane: b0 (k = t, n = g), b1 (k = t + 4, n = g).
constexpr Coordinate mma_b(int lane, int index) {
  return {lane % 4 + 4 * index, lane / 4};
}

/// C and D (16 x 8), four registers a lane: rows g and g + 8, columns 2 t and 2 t + 1.
constexpr Coordinate mma_c(int lane, int index) {
  return {lane / 4 + 8 * (index >> 1), 2 * (lane % 4) + (index & 1)};
}

}  // namespace lockstep::layout
