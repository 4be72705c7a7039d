#include <cuda_runtime_api.h>

#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/cuda/gpu_transport.h"
#include "core/device/cuda_branch.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

class HostRing final : public GpuTransport {
 public:
  HostRing(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
           const CommunicatorOptions& options)
      : control_(control),
        window_(options.window_elements),
        host_(bootstrap, peers, control, options) {
    const CpuView<float> staging = host_.window();
    check_cuda(cudaHostRegister(staging.data(), sizeof(float) * static_cast<size_t>(staging.size()),
                                cudaHostRegisterDefault),
               "locking the pages of the gradient window on the host");
  }
  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;
  HostRing(HostRing&&) = delete;
  HostRing& operator=(HostRing&&) = delete;
  ~HostRing() override {
    cudaDeviceSynchronize();  // calls of the host that are still enqueued refer to this
    cudaHostUnregister(host_.window().data());
  }

  CudaView<float> window() override { return window_.view(); }

  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad /*load*/) override {
    CudaStream& copies = copies_.fork(stream);
    copy_to_host(copies, host_.window().subview(range).data(),
                 CudaView<const float>(window_.view().subview(range)));
    copies.call_host(
        [](void* argument) {
          const auto& start = *static_cast<Start*>(argument);
          HostRing& ring = *start.ring;
          ring.guarded(
              [&] { ring.host_.all_reduce(ring.host_stream_, start.range, start.bucket); });
        },
        start_of(range, bucket));
    unfinished_.push_back(range);
  }

  void finish(CudaStream& stream) override {
    copies_.join(stream);
    stream.call_host(
        [](void* argument) {
          HostRing& ring = *static_cast<HostRing*>(argument);
          ring.guarded([&] { ring.host_.finish(ring.host_stream_); });
        },
        this);
    for (const Range range : unfinished_) {
      copy_from_host(stream, window_.view().subview(range), host_.window().subview(range).data());
    }
    unfinished_.clear();
  }

  void throw_if_failed() override {
    control_.throw_if_aborted();
    const std::lock_guard lock(mutex_);
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

  double take_seconds() override { return host_.take_times().total_seconds; }
  std::string name() const override { return "host:" + host_.transport_name(); }

 private:
  /// What a call of the host has to know when the stream gets there; graphs hold its address.
  struct Start {
    HostRing* ring;
    Range range;
    int bucket;
  };

  Start* start_of(Range range, int bucket) {
    auto& start = starts_[{{range.begin, range.end}, bucket}];
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
      const std::lock_guard lock(mutex_);
      if (failure_) {
        return;
      }
    }
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  ControlPlane& control_;
  CudaBuffer<float> window_;
  Communicator<CpuDevice> host_;
  CpuStream host_stream_;
  Branch<CudaDevice> copies_;      ///< to the host
  std::vector<Range> unfinished_;  ///< enqueued since the last finish()
  std::map<std::pair<std::pair<int64_t, int64_t>, int>, std::unique_ptr<Start>> starts_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

std::unique_ptr<GpuTransport> make_host_ring(Bootstrap& bootstrap, const PeerTable& peers,
                                             ControlPlane& control,
                                             const CommunicatorOptions& options) {
  return std::make_unique<HostRing>(bootstrap, peers, control, options);
}

}  // namespace lockstep
