#include "core/device/cpu_device.h"

#include <sys/mman.h>

#include "core/base/error.h"
#include "core/base/host_memory.h"

namespace lockstep {
namespace {

// From this size on, huge pages save more TLB misses than they can waste memory.
constexpr int64_t kHugePageBytes = int64_t{2} << 20;

}  // namespace

void* CpuDevice::allocate(int64_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  const auto size = static_cast<size_t>(bytes);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw OutOfMemoryError(
        "cannot allocate {:.1f} MiB of host memory; a smaller --batch-size needs less",
        static_cast<double>(bytes) / (1 << 20));
  }
  if (bytes >= kHugePageBytes) {
    ::madvise(data, size, MADV_HUGEPAGE);  // advice: without huge pages everything still works
  }
  return data;
}

int64_t CpuDevice::free_bytes() {
  return available_host_bytes();
}

void CpuDevice::deallocate(void* data, int64_t bytes) noexcept {
  ::munmap(data, static_cast<size_t>(bytes));
}

}  // namespace lockstep
