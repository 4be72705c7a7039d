#include <cuda_runtime_api.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/cpu_threads.h"
#include "comm/cuda/gpu_transport.h"
#include "comm/gpu_transport_select.h"
#include "comm/transport.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

// Long beside the step from piece to piece, short beside a large sum, of which the first piece's
// way to the host and the last one's way back overlap with nothing. 4 and 16 MiB were slower.
constexpr int64_t kPieceElements = 2 << 20;
// Six and eight were no faster between two H200 on one host.
constexpr int kMostLanes = 4;

/// As many lanes as every rank has CPUs for, two each: one runs the lane, and the kernel takes as
/// much for sockets. Collective.
int common_lanes(Bootstrap& bootstrap, const PeerTable& peers) {
  int lanes = kMostLanes;
  const std::string mine = std::to_string(default_threads(bootstrap, peers) / 2);
  for (const std::string& theirs : bootstrap.all_gather(mine)) {
    lanes = std::min(lanes, std::stoi(theirs));
  }
  return std::max(lanes, 1);
}

CommunicatorOptions with_lanes(CommunicatorOptions options, int lanes) {
  options.ring_lanes = lanes;
  return options;
}

/// Ranges go to the host, through the ring of the CPU and back in pieces: while one is summed, the
/// next is on its way to the host and the one before on its way back.
class HostRingTransport final : public GpuTransport {
 public:
  HostRingTransport(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                    const CommunicatorOptions& options)
      : control_(control),
        window_(options.window_elements),
        host_(bootstrap, peers, control, with_lanes(options, common_lanes(bootstrap, peers))) {
    const CpuView<float> staging = host_.window();
    check_cuda(cudaHostRegister(staging.data(), sizeof(float) * static_cast<size_t>(staging.size()),
                                cudaHostRegisterDefault),
               "locking the pages of the gradient window on the host");
  }
  HostRingTransport(const HostRingTransport&) = delete;
  HostRingTransport& operator=(const HostRingTransport&) = delete;
  HostRingTransport(HostRingTransport&&) = delete;
  HostRingTransport& operator=(HostRingTransport&&) = delete;
  ~HostRingTransport() override {
    cudaDeviceSynchronize();  // calls of the host that are still enqueued refer to this
    cudaHostUnregister(host_.window().data());
  }

  CudaView<float> window() override { return window_.view(); }

  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad /*load*/) override {
    enqueue(&Communicator<CpuDevice>::all_reduce, stream, range, bucket);
  }
  bool has_shards() const override { return true; }
  void reduce_scatter(CudaStream& stream, Range range, int bucket, SumLoad /*load*/) override {
    enqueue(&Communicator<CpuDevice>::reduce_scatter, stream, range, bucket);
  }
  void all_gather(CudaStream& stream, Range range, int bucket, SumLoad /*load*/) override {
    enqueue(&Communicator<CpuDevice>::all_gather, stream, range, bucket);
  }

  void finish(CudaStream& stream) override { follow(stream, from_host_); }

  void throw_if_failed() override {
    control_.throw_if_aborted();
    const std::lock_guard lock(mutex_);
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

  double take_seconds() override { return host_.take_times().total_seconds; }
  std::string name() const override {
    return gpu_transport_name(GpuTransportKind::kHostRing, host_.transport_name());
  }

 private:
  using Collective = void (Communicator<CpuDevice>::*)(CpuStream&, Range, int, SumLoad);

  /// What the call of the host for a piece has to know; graphs hold its address.
  struct Call {
    HostRingTransport* ring;
    Collective collective;
    Range piece;
    int bucket;

    friend bool operator==(const Call&, const Call&) = default;
  };

  void enqueue(Collective collective, CudaStream& stream, Range range, int bucket) {
    follow(to_host_, stream);
    for (Range piece{range.begin, range.begin}; piece.end < range.end; piece.begin = piece.end) {
      piece.end = std::min(range.end, piece.begin + kPieceElements);
      float* const staging = host_.window().subview(piece).data();
      copy_to_host(to_host_, staging, CudaView<const float>(window_.view().subview(piece)));
      follow(sums_, to_host_);
      sums_.call_host(run_piece, call_of({this, collective, piece, bucket}));
      follow(from_host_, sums_);
      copy_from_host(from_host_, window_.view().subview(piece), staging);
    }
  }

  Call* call_of(const Call& call) {
    const auto same = [&](const std::unique_ptr<Call>& other) { return *other == call; };
    auto found = std::find_if(calls_.begin(), calls_.end(), same);
    if (found == calls_.end()) {
      found = calls_.insert(found, std::make_unique<Call>(call));
    }
    return found->get();
  }

  /// Runs on a thread of the driver, which no exception may reach. After a failure the rest of the
  /// run's sums are left out.
  static void run_piece(void* argument) {
    const auto& call = *static_cast<Call*>(argument);
    HostRingTransport& ring = *call.ring;
    {
      const std::lock_guard lock(ring.mutex_);
      if (ring.failure_) {
        return;
      }
    }
    try {
      (ring.host_.*call.collective)(ring.host_stream_, call.piece, call.bucket, SumLoad::kBeside);
      ring.host_.finish(ring.host_stream_);
    } catch (...) {
      const std::lock_guard lock(ring.mutex_);
      ring.failure_ = std::current_exception();
    }
  }

  /// What comes next on `stream` comes after everything on `first` so far.
  void follow(CudaStream& stream, CudaStream& first) {
    passed_.record(first);
    stream.wait(passed_);
  }

  ControlPlane& control_;
  CudaBuffer<float> window_;
  Communicator<CpuDevice> host_;
  CpuStream host_stream_;
  CudaStream to_host_;
  CudaStream sums_;  ///< calls of the host
  CudaStream from_host_;
  CudaEvent passed_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

std::unique_ptr<GpuTransport> make_host_ring(Bootstrap& bootstrap, const PeerTable& peers,
                                             ControlPlane& control,
                                             const CommunicatorOptions& options) {
  return std::make_unique<HostRingTransport>(bootstrap, peers, control, options);
}

}  // namespace lockstep
