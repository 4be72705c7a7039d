#pragma once

// How LayerNorm's kernels divide a row: a team of warps holds it in registers, kPacks packs of four
// floats a thread.

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {

template <int kWarps_, int kPacks_>
struct RowTeam {
  static constexpr int kWarps = kWarps_;
  static constexpr int kPacks = kPacks_;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kMostChannels = kThreads * kPacks * 4;

  /// body(i, channel) for each pack i of the thread that exists.
  template <class Body>
  static __device__ void for_each_pack(int channels, Body body) {
    const int first = static_cast<int>(threadIdx.x) % kThreads * 4;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int channel = first + i * kThreads * 4;
      if (channel < channels) {
        body(i, channel);
      }
    }
  }

  /// The sum over the team, on every thread of it.
  static __device__ float sum(float value) {
    if constexpr (kWarps == 1) {
      return warp_sum(value);
    } else {
      return block_sum<kWarps>(value);
    }
  }
};

inline constexpr int kMostTeamChannels = RowTeam<8, 8>::kMostChannels;

/// Calls body with the smallest team for rows of this many channels, at most kMostTeamChannels.
template <class Body>
void dispatch_row_team(int64_t channels, Body body) {
  const auto fits = [&](auto team) {
    if (channels > decltype(team)::kMostChannels) {
      return false;
    }
    body(team);
    return true;
  };
  (void)(fits(RowTeam<1, 1>{}) || fits(RowTeam<1, 2>{}) || fits(RowTeam<1, 3>{}) ||
         fits(RowTeam<1, 4>{}) || fits(RowTeam<1, 6>{}) || fits(RowTeam<1, 8>{}) ||
         fits(RowTeam<8, 2>{}) || fits(RowTeam<8, 4>{}) || fits(RowTeam<8, 8>{}));
}

}  // namespace lockstep::cuda
