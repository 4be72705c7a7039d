#pragma once

#include "kernels/cpu/gemm_tile.h"

namespace lockstep::LOCKSTEP_ISA {

/// Copies b into the order in which tiles read it: panels of kTileColumns columns behind each
/// other, the last one of kLanes when that is enough. A panel holds, for every p in [0, depth), its
/// columns of b, with zeros behind the last one. Element (p, j) is b[p * row + j * column]; one of
/// the strides is 1.
void pack_b(float* to, const float* b, int64_t row, int64_t column, int64_t depth, int64_t columns);

}  // namespace lockstep::LOCKSTEP_ISA
