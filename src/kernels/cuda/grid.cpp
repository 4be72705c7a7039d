#include "kernels/cuda/grid.h"

#include "core/base/ceil_div.h"
#include "core/base/error.h"

namespace lockstep::cuda {

unsigned blocks_down(int64_t count, int64_t tile, const char* what) {
  constexpr int64_t kMost = 65535;
  const int64_t blocks = ceil_div(count, tile);
  if (blocks > kMost) {
    throw UnsupportedError("a matrix has {} {}, and kernels take at most {}; use a smaller batch",
                           count, what, kMost * tile);
  }
  return static_cast<unsigned>(blocks);
}

}  // namespace lockstep::cuda
