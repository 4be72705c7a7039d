#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// Blocks along the second axis of a grid, `tile` of a matrix's `count` rows or columns each:
/// `what` says which. Throws UnsupportedError when these are more than the axis can have.
unsigned blocks_down(int64_t count, int64_t tile, const char* what);

}  // namespace lockstep::cuda
