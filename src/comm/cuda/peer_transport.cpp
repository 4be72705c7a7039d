#include <chrono>
#include <exception>
#include <utility>

#include "comm/cuda/collective_watch.h"
#include "comm/cuda/gpu_transport.h"
#include "comm/cuda/peer_all_reduce.h"
#include "comm/gpu_transport_select.h"
#include "core/base/clock.h"
#include "core/device/cuda_branch.h"

namespace lockstep {
namespace {

class PeerTransport final : public GpuTransport {
 public:
  PeerTransport(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                const CommunicatorOptions& options)
      : bootstrap_(bootstrap),
        control_(control),
        leave_timeout_(options.collective_timeout),
        watch_(control, peers, options.collective_timeout),
        sums_(bootstrap, peers, options.window_elements, watch_.limit(), options.copy_engines) {}

  PeerTransport(const PeerTransport&) = delete;
  PeerTransport& operator=(const PeerTransport&) = delete;
  PeerTransport(PeerTransport&&) = delete;
  PeerTransport& operator=(PeerTransport&&) = delete;
  ~PeerTransport() override {
    watch_.stop();
    // An exception on its way will be what the others are told: they do not come.
    const bool failed = std::uncaught_exceptions() > 0;
    const Deadline deadline(leave_timeout_);
    sums_.leave(bootstrap_, [&] { return failed || control_.aborted() || deadline.passed(); });
  }

  CudaView<float> window() override { return sums_.window(); }

  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad load) override {
    if (!sums_.push(stream, range, bucket, load)) {
      sums_.all_reduce(fork(stream), range, bucket, load);
    }
  }

  bool has_shards() const override { return true; }
  void reduce_scatter(CudaStream& stream, Range range, int bucket, SumLoad load) override {
    sums_.reduce_scatter(fork(stream), range, bucket, load);
  }
  void all_gather(CudaStream& stream, Range range, int bucket, SumLoad load) override {
    sums_.all_gather(fork(stream), range, bucket, load);
  }

  void finish(CudaStream& stream) override {
    if (std::exchange(forked_, false)) {
      branch_.join(stream);
    }
    sums_.finish(stream);
  }

  void throw_if_failed() override { watch_.throw_if_failed(); }
  double take_seconds() override { return watch_.take_busy_seconds(); }
  std::string name() const override { return gpu_transport_name(GpuTransportKind::kPeer); }

 private:
  CudaStream& fork(CudaStream& stream) {
    forked_ = true;
    return branch_.fork(stream);
  }

  Bootstrap& bootstrap_;
  ControlPlane& control_;
  std::chrono::milliseconds leave_timeout_;
  CollectiveWatch watch_;
  PeerAllReduce sums_;
  // Ahead of what backward still has to run: the neighbours wait.
  Branch<CudaDevice> branch_{StreamPriority::kHigh};
  bool forked_ = false;  ///< since the last finish()
};

}  // namespace

std::unique_ptr<GpuTransport> make_peer(Bootstrap& bootstrap, const PeerTable& peers,
                                        ControlPlane& control, const CommunicatorOptions& options) {
  return std::make_unique<PeerTransport>(bootstrap, peers, control, options);
}

}  // namespace lockstep
