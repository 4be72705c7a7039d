#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/peer_pattern.h"
#include "core/device/cuda_device.h"

// The peer probe's work on the GPU. A window is kProbeWindowBytes long and aligned for 16 bytes.

namespace lockstep {

/// Writes the pieces of a window, then the rest stays as it is.
void store_pieces(CudaStream& stream, std::byte* window, uint32_t key);
/// Writes the whole window.
void fill_window(CudaStream& stream, std::byte* window, uint32_t key);

/// The first word of a window that is wrong.
struct WindowCheck {
  static constexpr uint64_t kRight = ~uint64_t{0};
  uint64_t first = kRight;  ///< index in the upper half, what it holds in the lower

  bool right() const { return first == kRight; }
  int64_t index() const { return static_cast<int64_t>(first >> 32U); }
  uint32_t found() const { return static_cast<uint32_t>(first); }
};
/// `check` is memory of the GPU that holds a WindowCheck of a right window.
void check_window(CudaStream& stream, const std::byte* window, ProbeContent expected,
                  WindowCheck* check);

/// Copies by a kernel that loads from the GPU's own memory and stores elsewhere. `bytes` is a
/// multiple of 16.
void copy_by_kernel(CudaStream& stream, std::byte* to, const std::byte* from, int64_t bytes);

/// Ping-pong between two GPUs while kernels of both run: each block has a slot in the memory of
/// both, with a flag and behind it a message; and a partner, the block of its index there.
inline constexpr int kLiveBlocks = 16;
inline constexpr int64_t kLiveSlotBytes = 4096;
inline constexpr int64_t kLiveBytes = kLiveBlocks * kLiveSlotBytes;

struct LivePlay {
  std::byte* own = nullptr;   ///< kLiveBytes, zeroed before either side begins
  std::byte* peer = nullptr;  ///< the other side's
  int own_rank = 0;
  int peer_rank = 0;
  int blocks = 1;
  uint32_t rounds = 0;
  uint32_t epoch = 0;  ///< the rounds are epochs from here on
  bool first = false;  ///< sends first, else it answers
  uint64_t timeout_ns = 0;
};

/// What a block saw.
struct LiveResult {
  uint32_t seen = 0;         ///< messages that came
  uint32_t wrong = 0;        ///< words of them that were not what was sent before the flag
  uint32_t wrong_round = 0;  ///< of the first of those
  uint32_t wrong_word = 0;   ///< as probe_word's index
  uint32_t found = 0;
  uint64_t nanoseconds = 0;  ///< of the rounds behind the first
};
using LiveResults = std::array<LiveResult, kLiveBlocks>;

/// `results` is memory of the GPU, zeroed.
void play_live(CudaStream& stream, const LivePlay& play, LiveResult* results);

/// A mark that is copied behind a window has a line of its own.
inline constexpr int64_t kMarkBytes = 128;

/// What a kernel waits for while another GPU's copies write it.
struct Arrival {
  const std::byte* window = nullptr;
  ProbeContent expected{};
  const uint64_t* mark = nullptr;
  uint64_t awaited = 0;  ///< the mark behind the window's copy
  uint64_t timeout_ns = 0;
  uint32_t* begun = nullptr;  ///< page-locked: set to `epoch` when the whole kernel runs
  uint32_t epoch = 0;
};

/// What it saw as soon as the mark was there.
struct ArrivalCheck {
  WindowCheck window;
  uint32_t begun = 0;  ///< blocks that run
  uint32_t late = 0;   ///< blocks that no mark came to
};
/// `check` is memory of the GPU that holds an ArrivalCheck of a right window.
void await_window(CudaStream& stream, const Arrival& arrival, ArrivalCheck* check);

}  // namespace lockstep
