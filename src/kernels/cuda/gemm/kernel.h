#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// The kernels that a product can be computed by: a family, and how much of c a block computes.
/// Larger tiles read less for each product; smaller ones give every multiprocessor something to do.
enum class GemmKernel : uint8_t {
  kSimt128x128,  ///< fp32
  kSimt128x64,
  kSimt64x64,
  kMma128x128,  ///< TF32, mma.sync: any GPU from sm_80
  kMma128x64,
  kMma64x64,
  kWgmma128x256,  ///< TF32, wgmma: sm_90, K-major operands of aligned rows
  kWgmma128x192,
  kWgmma128x128,
  kWgmma128x96,
  kWgmma128x64,
  kPingPong64x256,  ///< as above, by blocks that stay for several tiles
  kPingPong64x192,
  kWgmmaMn128x256,  ///< TF32, wgmma: sm_90, as above, but an MN-major a
  kWgmmaMn128x192,
  kWgmmaMn128x128,
  kSplit128x128,  ///< fp32, wgmma of factors split in two: sm_90, as above, a of any major
  kSplit128x96,
};

/// Which a a kernel can read as it lies.
enum class ReadsA : uint8_t { kAny, kKMajor, kMnMajor };

/// Resident tiles of a kernel whose blocks stay: a block computes all that fall to its
/// multiprocessor.
inline constexpr int64_t kAnyNumber = int64_t{1} << 30;

/// What a plan needs to know of a kernel.
struct GemmKernelFacts {
  std::string_view name;
  int64_t tile_m;    ///< of c
  int64_t tile_n;    ///< of c
  int64_t resident;  ///< tiles that a multiprocessor has at a time
  /// By wgmma: reads a b that is not K-major from a transposed copy, may be given a part of k, and,
  /// where it reads an MN-major a, can sum a's rows beside.
  bool wgmma = false;
  ReadsA a = ReadsA::kAny;
};
GemmKernelFacts kernel_facts(GemmKernel kernel);

}  // namespace lockstep
