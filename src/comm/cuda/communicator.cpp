#include "comm/cuda/communicator.h"

#include <cuda_runtime_api.h>

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda_error.h"

namespace lockstep {

struct Communicator<CudaDevice>::Impl {
  /// What a call of the host has to know when the stream gets there; graphs hold its address.
  struct Start {
    Impl* communicator;
    Range range;
    int bucket;
  };

  Impl(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
       const CommunicatorOptions& options)
      : window(options.window_elements) {
    if (bootstrap.world_size() == 1) {
      return;
    }
    host.emplace(bootstrap, peers, control, options);
    const CpuView<float> staging = host->window();
    check_cuda(cudaHostRegister(staging.data(), sizeof(float) * static_cast<size_t>(staging.size()),
                                cudaHostRegisterDefault),
               "locking the pages of the gradient window on the host");
    copies.emplace();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() {
    cudaDeviceSynchronize();  // calls of the host that are still enqueued refer to this
    if (host) {
      cudaHostUnregister(host->window().data());
    }
  }

  Start* start_of(Range range, int bucket) {
    const std::pair<int64_t, int64_t> key{range.begin, range.end};
    auto& start = starts[{key, bucket}];
    if (!start) {
      start = std::make_unique<Start>(Start{this, range, bucket});
    }
    return start.get();
  }

  /// Runs a part of a collective on a thread of the driver, which no exception may reach. After a
  /// failure the rest of the run's sums are left out.
  template <class Work>
  void guarded(const Work& work) noexcept {
    {
      const std::lock_guard lock(mutex);
      if (failure) {
        return;
      }
    }
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  }

  void rethrow() {
    const std::lock_guard lock(mutex);
    if (failure) {
      std::rethrow_exception(failure);
    }
  }

  CudaBuffer<float> window;
  std::optional<Communicator<CpuDevice>> host;  ///< with several ranks
  CpuStream host_stream;
  std::optional<CudaStream> copies;  ///< to the host, beside the computation
  CudaEvent written;
  CudaEvent copied;
  std::vector<Range> unfinished;  ///< enqueued since the last finish()
  std::map<std::pair<std::pair<int64_t, int64_t>, int>, std::unique_ptr<Start>> starts;
  std::mutex mutex;
  std::exception_ptr failure;
};

Communicator<CudaDevice>::Communicator(Bootstrap& bootstrap, const PeerTable& peers,
                                       ControlPlane& control, const CommunicatorOptions& options)
    : impl_(std::make_unique<Impl>(bootstrap, peers, control, options)) {}

Communicator<CudaDevice>::~Communicator() = default;

CudaView<float> Communicator<CudaDevice>::window() {
  return impl_->window.view();
}

void Communicator<CudaDevice>::all_reduce(CudaStream& stream, Range range, int bucket) {
  Impl& m = *impl_;
  m.rethrow();
  if (!m.host || range.empty()) {
    return;
  }
  m.written.record(stream);
  m.copies->wait(m.written);
  copy_to_host(*m.copies, m.host->window().subview(range).data(),
               CudaView<const float>(m.window.view().subview(range)));
  m.copies->call_host(
      [](void* argument) {
        const auto& start = *static_cast<Impl::Start*>(argument);
        Impl& communicator = *start.communicator;
        communicator.guarded([&] {
          communicator.host->all_reduce(communicator.host_stream, start.range, start.bucket);
        });
      },
      m.start_of(range, bucket));
  m.unfinished.push_back(range);
}

void Communicator<CudaDevice>::finish(CudaStream& stream) {
  Impl& m = *impl_;
  m.rethrow();
  if (m.unfinished.empty()) {
    return;
  }
  m.copied.record(*m.copies);
  stream.wait(m.copied);
  stream.call_host(
      [](void* argument) {
        Impl& communicator = *static_cast<Impl*>(argument);
        communicator.guarded([&] { communicator.host->finish(communicator.host_stream); });
      },
      &m);
  for (const Range range : m.unfinished) {
    copy_from_host(stream, m.window.view().subview(range), m.host->window().subview(range).data());
  }
  m.unfinished.clear();
}

CommTimes Communicator<CudaDevice>::take_times() {
  impl_->rethrow();
  return impl_->host ? impl_->host->take_times() : CommTimes{};
}

std::string Communicator<CudaDevice>::transport_name() const {
  return impl_->host ? "host:" + impl_->host->transport_name() : "none";
}

}  // namespace lockstep
