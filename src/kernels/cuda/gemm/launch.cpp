#include "kernels/cuda/gemm/launch.h"

#include "core/base/error.h"

namespace lockstep::cuda {

GemmLauncher launcher_of(GemmKernel kernel, bool aligned) {
  switch (kernel) {
    case GemmKernel::kSimt128x128:
      return &launch_simt_128x128;
    case GemmKernel::kSimt128x64:
      return &launch_simt_128x64;
    case GemmKernel::kSimt64x64:
      return aligned ? &launch_simt_64x64 : &launch_simt_unaligned;
    case GemmKernel::kMma128x128:
      return &launch_mma_128x128;
    case GemmKernel::kMma128x64:
      return &launch_mma_128x64;
    case GemmKernel::kMma64x64:
      return aligned ? &launch_mma_64x64 : &launch_mma_unaligned;
    case GemmKernel::kWgmma128x256:
      return &launch_wgmma_128x256;
    case GemmKernel::kWgmma128x192:
      return &launch_wgmma_128x192;
    case GemmKernel::kWgmma128x128:
      return &launch_wgmma_128x128;
    case GemmKernel::kWgmma128x96:
      return &launch_wgmma_128x96;
    case GemmKernel::kWgmma128x64:
      return &launch_wgmma_128x64;
    case GemmKernel::kPingPong64x256:
      return &launch_pingpong_64x256;
    case GemmKernel::kPingPong64x192:
      return &launch_pingpong_64x192;
    case GemmKernel::kWgmmaMn128x256:
      return &launch_wgmma_mn_128x256;
    case GemmKernel::kWgmmaMn128x192:
      return &launch_wgmma_mn_128x192;
    case GemmKernel::kWgmmaMn128x128:
      return &launch_wgmma_mn_128x128;
    case GemmKernel::kSplit128x128:
      return &launch_split_128x128;
    case GemmKernel::kSplit128x96:
      return &launch_split_128x96;
  }
  throw InternalError("a kernel of {}", static_cast<int>(kernel));
}

void require_fused(const GemmLaunch& launch, bool fused) {
  LOCKSTEP_CHECK(fused, "features {} by {}", launch.features,
                 kernel_facts(launch.plan.kernel).name);
}

}  // namespace lockstep::cuda
