// The registers of mma.sync as the hardware has them, against kernels/layout/mma_fragment.h.
#include <gtest/gtest.h>

#include <vector>

#include "core/device/cuda_device.h"
#include "gpu/fragment_probe.h"
#include "kernels/layout/mma_fragment.h"

namespace lockstep {
namespace {

using layout::Coordinate;

// A product of two single ones is a one where A's row meets B's column, if their k is the same.
// Over all pairs this determines the three maps, but for names of rows, columns and k that cannot
// matter.
TEST(Fragments, AreWhereTheMapsSay) {
  require_cuda_device();
  CudaStream stream;
  CudaBuffer<float> d(static_cast<int64_t>(kProbeA) * kProbeB * kProbeD);
  probe_fragments(stream, d.view());
  std::vector<float> found(static_cast<size_t>(d.size()));
  copy_to_host(stream, found.data(), std::as_const(d).view());
  stream.synchronize();

  size_t at = 0;
  int ones = 0;
  for (int hot_a = 0; hot_a < kProbeA; ++hot_a) {
    const Coordinate a = layout::mma_a(hot_a / 4, hot_a % 4);
    for (int hot_b = 0; hot_b < kProbeB; ++hot_b) {
      const Coordinate b = layout::mma_b(hot_b / 2, hot_b % 2);
      for (int hot_d = 0; hot_d < kProbeD; ++hot_d, ++at) {
        const Coordinate expected = {a.row, b.column};
        const bool one = a.column == b.row && layout::mma_c(hot_d / 4, hot_d % 4) == expected;
        ones += one ? 1 : 0;
        ASSERT_EQ(found[at], one ? 1.0F : 0.0F)
            << "A lane " << hot_a / 4 << " register " << hot_a % 4 << ", B lane " << hot_b / 2
            << " register " << hot_b % 2 << ", D lane " << hot_d / 4 << " register " << hot_d % 4;
      }
    }
  }
  EXPECT_EQ(ones, layout::kMmaM * layout::kMmaN * layout::kMmaK);
}

}  // namespace
}  // namespace lockstep
