#include "core/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/device/cuda_error.h"
#include "core/device/scratch_growth.h"

namespace lockstep {

int cuda_device_count() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  // No driver, the toolkit's stub in its place, or a driver that is too old: no device can be used.
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ||
      code == cudaErrorStubLibrary) {
    return 0;
  }
  check_cuda(code, "counting GPUs");
  return count;
}

void require_cuda_device() {
  if (cuda_device_count() == 0) {
    throw UnsupportedError(
        "no usable GPU: no NVIDIA device is visible, or its driver is missing or too old; where a "
        "program has it, --device cpu needs none");
  }
}

void use_cuda_device(int device) {
  check_cuda(cudaSetDevice(device), "choosing a GPU");
}

CudaFacts cuda_facts(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "reading a GPU's properties");
  std::array<char, 32> pci{};
  check_cuda(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), device),
             "reading a GPU's PCI id");
  std::string uuid;
  for (const char byte : properties.uuid.bytes) {
    uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return {
      .name = properties.name,
      .compute_capability = 10 * properties.major + properties.minor,
      .multiprocessors = properties.multiProcessorCount,
      .shared_bytes_per_block = static_cast<int64_t>(properties.sharedMemPerBlockOptin),
      .shared_bytes_per_multiprocessor =
          static_cast<int64_t>(properties.sharedMemPerMultiprocessor),
      .l2_bytes = properties.l2CacheSize,
      .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
      .pci_id = pci.data(),
      .uuid = std::move(uuid),
  };
}

CudaStream::CudaStream(Precision precision, StreamPriority priority) : precision_(precision) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "reading the current GPU");
  facts_ = cuda_facts(device);
  int lowest = 0;
  int highest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "reading stream priorities");
  check_cuda(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking,
                                          priority == StreamPriority::kHigh ? highest : lowest),
             "creating a stream");
}
CudaStream::~CudaStream() {
  for (void* block : scratch_) {
    cudaFree(block);
  }
  if (handle_ != nullptr) {
    cudaStreamDestroy(handle_);
  }
}
CudaStream::CudaStream(CudaStream&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      precision_(other.precision_),
      facts_(std::move(other.facts_)),
      scratch_(std::exchange(other.scratch_, {})),
      scratch_size_(std::exchange(other.scratch_size_, 0)) {}
CudaStream& CudaStream::operator=(CudaStream&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(precision_, other.precision_);
  std::swap(facts_, other.facts_);
  std::swap(scratch_, other.scratch_);
  std::swap(scratch_size_, other.scratch_size_);
  return *this;
}
void* CudaStream::scratch_bytes(int64_t bytes) {
  if (bytes > scratch_size_) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(handle_, &capture), "asking whether a stream is captured");
    LOCKSTEP_CHECK(capture == cudaStreamCaptureStatusNone,
                   "{} bytes of scratch memory asked for while a graph is captured, {} are there",
                   bytes, scratch_size_);
    const int64_t size = grown_scratch(bytes, scratch_size_);
    scratch_.push_back(CudaDevice::allocate(size));
    scratch_size_ = size;
  }
  return scratch_.empty() ? nullptr : scratch_.back();
}
void CudaStream::wait(const CudaEvent& event) {
  check_cuda(cudaStreamWaitEvent(handle_, event.handle(), 0), "waiting for an event");
}
void CudaStream::call_host(void (*function)(void*), void* argument) {
  check_cuda(cudaLaunchHostFunc(handle_, function, argument), "enqueuing a call of the host");
}
void CudaStream::synchronize() {
  check_cuda(cudaStreamSynchronize(handle_), "waiting for a stream");
}

CudaEvent::CudaEvent() {
  check_cuda(cudaEventCreate(&handle_), "creating an event");
}
CudaEvent::~CudaEvent() {
  if (handle_ != nullptr) {
    cudaEventDestroy(handle_);
  }
}
CudaEvent& CudaEvent::operator=(CudaEvent&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}
void CudaEvent::record(CudaStream& stream) {
  check_cuda(cudaEventRecord(handle_, stream.handle()), "recording an event");
}
void CudaEvent::mark(CudaStream& stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream.handle(), &capture),
             "asking whether a stream is captured");
  const unsigned flags =
      capture == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
  check_cuda(cudaEventRecordWithFlags(handle_, stream.handle(), flags), "recording an event");
}
void CudaEvent::synchronize() {
  check_cuda(cudaEventSynchronize(handle_), "waiting for an event");
}
double CudaEvent::seconds_since(const CudaEvent& start) {
  check_cuda(cudaEventSynchronize(handle_), "waiting for an event");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, start.handle_, handle_), "reading a time");
  return milliseconds * 1e-3;
}

CudaGraph::CudaGraph(CudaStream& stream, const std::function<void()>& work) {
  check_cuda(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal),
             "capturing a graph");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream.handle(), &graph);
    if (graph != nullptr) {
      cudaGraphDestroy(graph);
    }
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream.handle(), &graph), "capturing a graph");
  const cudaError_t made = cudaGraphInstantiate(&handle_, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(made, "making a graph executable");
}
CudaGraph::~CudaGraph() {
  if (handle_ != nullptr) {
    cudaGraphExecDestroy(handle_);
  }
}
CudaGraph& CudaGraph::operator=(CudaGraph&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}
void CudaGraph::launch(CudaStream& stream) {
  check_cuda(cudaGraphLaunch(handle_, stream.handle()), "launching a graph");
}

void* CudaHost::allocate(int64_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  void* data = nullptr;
  const cudaError_t made = cudaMallocHost(&data, static_cast<size_t>(bytes));
  if (made == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemoryError("cannot lock {:.1f} MiB of host memory for the GPU",
                           static_cast<double>(bytes) / (1 << 20));
  }
  check_cuda(made, "locking host memory");
  std::memset(data, 0, static_cast<size_t>(bytes));
  return data;
}

void CudaHost::deallocate(void* data, int64_t /*bytes*/) noexcept {
  cudaFreeHost(data);
}

void* CudaDevice::allocate(int64_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  void* data = nullptr;
  const cudaError_t made = cudaMalloc(&data, static_cast<size_t>(bytes));
  if (made == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0;
    size_t total = 0;
    cudaMemGetInfo(&free, &total);
    constexpr double mib = 1 << 20;
    throw OutOfMemoryError(
        "cannot allocate {:.1f} MiB on the GPU: {:.1f} of {:.1f} MiB are free; a smaller "
        "--batch-size needs less",
        static_cast<double>(bytes) / mib, static_cast<double>(free) / mib,
        static_cast<double>(total) / mib);
  }
  check_cuda(made, "allocating device memory");
  check_cuda(cudaMemset(data, 0, static_cast<size_t>(bytes)), "zeroing device memory");
  // The memset is on the default stream, which the streams of this library do not wait for.
  check_cuda(cudaDeviceSynchronize(), "zeroing device memory");
  return data;
}

void CudaDevice::deallocate(void* data, int64_t /*bytes*/) noexcept {
  cudaFree(data);
}

int64_t CudaDevice::free_bytes() {
  size_t free = 0;
  size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "reading the GPU's free memory");
  return static_cast<int64_t>(free);
}

void set_zero_bytes(CudaStream& stream, void* data, int64_t bytes) {
  check_cuda(cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), stream.handle()),
             "zeroing device memory");
}

void copy_bytes_from_host(CudaStream& stream, void* to, const void* from, int64_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice,
                             stream.handle()),
             "copying to the GPU");
}
void copy_bytes_to_host(CudaStream& stream, void* to, const void* from, int64_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost,
                             stream.handle()),
             "copying from the GPU");
}

void copy_bytes(CudaStream& stream, void* to, const void* from, int64_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                             stream.handle()),
             "copying on the GPU");
}

}  // namespace lockstep
