#include "comm/cuda/nccl.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

// The values and types of nccl.h.
constexpr int kSuccess = 0;
constexpr int kInProgress = 7;
constexpr int kFloat = 7;
constexpr int kSum = 0;
struct UniqueId {
  std::array<char, 128> bytes;
};

constexpr int kOldestVersion = 20900;  // the first whose sums can be captured into graphs

/// Throws with the first rank's problem, where one has any. Collective.
void agree_on_start(Bootstrap& bootstrap, const std::string& problem, std::string_view instead) {
  const std::vector<std::string> problems = bootstrap.all_gather(problem);
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty()) {
      throw UnsupportedError("rank {}: {}, or {}", rank, problems[rank], instead);
    }
  }
}

/// NCCL finds this too, but not on the ranks that share no GPU, which would wait. Collective.
void refuse_shared_gpus(Bootstrap& bootstrap, int device, std::string_view instead) {
  std::map<std::string, size_t> users;
  const std::vector<std::string> uuids = bootstrap.all_gather(cuda_facts(device).uuid);
  for (size_t rank = 0; rank < uuids.size(); ++rank) {
    const auto [other, first] = users.emplace(uuids[rank], rank);
    if (!first) {
      throw UsageError("ranks {} and {} share a GPU, which NCCL does not serve; {}", other->second,
                       rank, instead);
    }
  }
}

}  // namespace

struct Nccl::Library {
  // Never unloaded: threads of NCCL may outlive a communicator.
  void* handle = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  std::string problem = handle == nullptr ? ::dlerror() : "";
  int version = 0;

  // As nccl.h declares them, with int for its enumerations and void* for its communicator.
  int (*get_version)(int*) = find("ncclGetVersion");
  const char* (*error_string)(int) = find("ncclGetErrorString");
  int (*get_unique_id)(UniqueId*) = find("ncclGetUniqueId");
  int (*comm_init_rank)(void**, int, UniqueId, int) = find("ncclCommInitRank");
  int (*comm_destroy)(void*) = find("ncclCommDestroy");
  int (*comm_abort)(void*) = find("ncclCommAbort");
  int (*comm_get_async_error)(void*, int*) = find("ncclCommGetAsyncError");
  int (*all_reduce)(const void*, void*, size_t, int, int, void*,
                    CUstream_st*) = find("ncclAllReduce");

  Library() {
    if (problem.empty() && get_version(&version) == kSuccess && version < kOldestVersion) {
      problem = "libnccl.so.2 is older than 2.9";
    }
    if (!problem.empty()) {
      problem += "; install NVIDIA's NCCL, 2.9 or newer";
    }
  }

 private:
  /// What dlsym found, as the type that is asked for.
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function*>(address);
    }
  };

  Symbol find(const char* name) {
    void* const found = handle == nullptr ? nullptr : ::dlsym(handle, name);
    if (found == nullptr && problem.empty()) {
      problem = fmt::format("libnccl.so.2 lacks {}", name);
    }
    return {found};
  }
};

Nccl::Nccl(Bootstrap& bootstrap, std::string_view instead) {
  // Otherwise a first sum connects the ranks, and the call blocks until all of them have come.
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  library_ = std::make_unique<const Library>();
  agree_on_start(bootstrap, library_->problem, instead);
  check_cuda(cudaGetDevice(&device_), "asking for the current GPU");
  refuse_shared_gpus(bootstrap, device_, instead);
  UniqueId id{};
  std::string problem;
  if (bootstrap.rank() == 0) {
    if (const int status = library_->get_unique_id(&id); status != kSuccess) {
      problem = fmt::format("ncclGetUniqueId: {}", library_->error_string(status));
    }
  }
  agree_on_start(bootstrap, problem, instead);
  const std::string first =
      bootstrap.all_gather(std::string_view(id.bytes.data(), id.bytes.size())).front();
  std::memcpy(id.bytes.data(), first.data(), id.bytes.size());
  const int status =
      library_->comm_init_rank(&communicator_, bootstrap.world_size(), id, bootstrap.rank());
  if (status != kSuccess) {
    throw UnsupportedError("NCCL {} does not start: {}; {}", version(),
                           library_->error_string(status), instead);
  }
}

Nccl::~Nccl() {
  if (communicator_ != nullptr) {
    library_->comm_destroy(communicator_);
  }
}

std::string Nccl::version() const {
  const int version = library_->version;
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void Nccl::all_reduce(CudaStream& stream, CudaView<float> values) {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) {
    return;
  }
  const int status =
      library_->all_reduce(values.data(), values.data(), static_cast<size_t>(values.size()), kFloat,
                           kSum, communicator_, stream.handle());
  if (status != kSuccess) {
    throw InternalError("ncclAllReduce: {}", library_->error_string(status));
  }
}

std::string Nccl::problem() const {
  if (communicator_ == nullptr) {
    return {};
  }
  int found = kSuccess;
  const int status = library_->comm_get_async_error(communicator_, &found);
  const int problem = status == kSuccess ? found : status;
  return problem == kSuccess || problem == kInProgress ? "" : library_->error_string(problem);
}

void Nccl::abort() noexcept {
  void* aborted = nullptr;
  {
    const std::lock_guard lock(mutex_);
    aborted = std::exchange(communicator_, nullptr);
  }
  if (aborted != nullptr) {
    cudaSetDevice(device_);  // NCCL returns to the thread's GPU, and would start that
    library_->comm_abort(aborted);
  }
}

}  // namespace lockstep
