#pragma once

#include <cstdint>

namespace lockstep {

/// What else a device does while it sums. The same on all ranks.
enum class SumLoad : uint8_t {
  kAlone,   ///< nothing: all multiprocessors may move data
  kBeside,  ///< it computes: few blocks, which take little from it and somewhat longer
};

}  // namespace lockstep
