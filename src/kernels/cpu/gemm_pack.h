#pragma once

#include "kernels/cpu/gemm_tile.h"

// Copies of operands in the order in which the tiles read them.
namespace lockstep::LOCKSTEP_ISA {

/// Floats from one p to the next in a packed tile of a: whole vectors, so that packing needs no
/// partial store.
inline constexpr int64_t kPackedRows = (kTileRows + kLanes - 1) / kLanes * kLanes;

/// to[p * kPackedRows + i] = a[i + p * stride], for i in [0, rows), p in [0, depth).
void pack_a_tile(float* to, const float* a, int64_t stride, int64_t rows, int64_t depth);

/// Panels of kTileColumns columns behind each other, the last one of kLanes when that is enough:
/// each holds, for every p in [0, depth), its columns of b, with zeros behind the last one.
/// Element (p, j) is b[p * row + j * column]; one of the strides is 1.
void pack_b(float* to, const float* b, int64_t row, int64_t column, int64_t depth, int64_t columns);

}  // namespace lockstep::LOCKSTEP_ISA
