#pragma once

#include <string>
#include <vector>

#include "kernels/layout/swizzle.h"

namespace lockstep::layout {

/// One kind of access to shared memory that a kernel's warps perform, over all warps, steps and
/// vectors of a tile.
struct Access {
  int rung;          ///< of the ladder
  Role tile;         ///< which operand's
  Major major;       ///< how the operand lies in global memory
  std::string what;  ///< "store" or "load", with the width
  int passes;        ///< the worst over all of them; 1 is free of bank conflicts
};

/// Every staging store and every fragment load of rungs 10 to 14, from the same constexpr functions
/// that the kernels index with.
std::vector<Access> access_table();

/// Passes of rung 10's staging stores when the tile of an operand of major `walked` is keyed as for
/// `keyed`: what the key of the wrong axis costs.
int fragment_store_passes(Role role, Major walked, Major keyed);

}  // namespace lockstep::layout
