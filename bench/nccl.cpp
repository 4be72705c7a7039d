#include "nccl.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/base/error.h"

namespace lockstep {
namespace {

// The values and types of nccl.h.
constexpr int kSuccess = 0;
constexpr int kFloat = 7;
constexpr int kSum = 0;
struct UniqueId {
  std::array<char, 128> bytes;
};

}  // namespace

Nccl::Nccl(Bootstrap& bootstrap) : library_(::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {
  const std::string problem = library_ == nullptr ? ::dlerror() : "";
  for (const std::string& theirs : bootstrap.all_gather(problem)) {
    if (!theirs.empty()) {
      throw UnsupportedError("--baseline nccl: {}", theirs);
    }
  }
  ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  UniqueId id{};
  if (bootstrap.rank() == 0) {
    call("ncclGetUniqueId", &id);
  }
  const std::string first =
      bootstrap.all_gather(std::string_view(id.bytes.data(), id.bytes.size())).front();
  std::memcpy(id.bytes.data(), first.data(), id.bytes.size());
  call("ncclCommInitRank", &communicator_, bootstrap.world_size(), id, bootstrap.rank());
}

Nccl::~Nccl() {
  reinterpret_cast<int (*)(void*)>(::dlsym(library_, "ncclCommDestroy"))(communicator_);
  ::dlclose(library_);
}

void* Nccl::symbol(const char* name) const {
  void* const found = ::dlsym(library_, name);
  if (found == nullptr) {
    throw UnsupportedError("NCCL lacks {}", name);
  }
  return found;
}

template <class... Args>
void Nccl::call(const char* name, Args... args) const {
  const int status = reinterpret_cast<int (*)(Args...)>(symbol(name))(args...);
  if (status != kSuccess) {
    throw InternalError("{} failed with status {}", name, status);
  }
}

std::string Nccl::version() const {
  int version = 0;
  call("ncclGetVersion", &version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void Nccl::all_reduce(CudaStream& stream, CudaView<float> values) const {
  call("ncclAllReduce", static_cast<const void*>(values.data()), static_cast<void*>(values.data()),
       static_cast<size_t>(values.size()), kFloat, kSum, communicator_, stream.handle());
}

}  // namespace lockstep
