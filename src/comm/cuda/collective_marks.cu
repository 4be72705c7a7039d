#include <cuda_runtime.h>

#include "comm/cuda/collective_marks.h"
#include "comm/cuda/wait.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

__global__ void begin_kernel(CollectiveWords* words, uint64_t* start_ns, int bucket) {
  *start_ns = nanoseconds();
  static_cast<volatile CollectiveWords*>(words)->bucket = bucket;
}

__global__ void end_kernel(CollectiveWords* words, const uint64_t* start_ns) {
  volatile CollectiveWords* shown = words;
  shown->busy_ns = shown->busy_ns + (nanoseconds() - *start_ns);
  shown->bucket = -1;
}

void check_launch() {
  check_cuda(cudaGetLastError(), "launching a mark around a collective");
}

}  // namespace

void enqueue_begin(CudaStream& stream, CollectiveWords* words, uint64_t* start_ns, int bucket) {
  begin_kernel<<<1, 1, 0, stream.handle()>>>(words, start_ns, bucket);
  check_launch();
}

void enqueue_end(CudaStream& stream, CollectiveWords* words, const uint64_t* start_ns) {
  end_kernel<<<1, 1, 0, stream.handle()>>>(words, start_ns);
  check_launch();
}

}  // namespace lockstep
