// all_reduce_bench --device cuda in a build without CUDA.
#include "all_reduce_bench.h"
#include "core/device/cuda_device.h"

namespace lockstep {

std::unique_ptr<AllReduceBench> make_cuda_all_reduce_bench(MpiBootstrap& /*bootstrap*/,
                                                           const PeerTable& /*peers*/,
                                                           ControlPlane& /*control*/,
                                                           const AllReduceOptions& /*options*/) {
  require_cuda_device();
  return nullptr;
}

}  // namespace lockstep
