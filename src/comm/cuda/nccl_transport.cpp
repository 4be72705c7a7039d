#include <exception>

#include "comm/cuda/collective_marks.h"
#include "comm/cuda/collective_watch.h"
#include "comm/cuda/gpu_transport.h"
#include "comm/cuda/nccl.h"
#include "comm/cuda/nccl_guard.h"
#include "core/device/cuda_branch.h"

namespace lockstep {
namespace {

class NcclTransport final : public GpuTransport {
 public:
  NcclTransport(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                const CommunicatorOptions& options)
      : nccl_(bootstrap, "use --transport auto"),
        window_(options.window_elements),
        start_ns_(1),
        watch_(control, peers, options.collective_timeout),
        guard_(nccl_, control, peers, bootstrap.rank(), options.collective_timeout,
               *watch_.limit().words) {}

  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;
  NcclTransport(NcclTransport&&) = delete;
  NcclTransport& operator=(NcclTransport&&) = delete;
  ~NcclTransport() override {
    if (std::uncaught_exceptions() > 0) {
      guard_.abort();  // this rank comes to no more sums
    }
    watch_.stop();  // until the GPU is idle the guard goes on
    guard_.stop();
  }

  CudaView<float> window() override { return window_.view(); }

  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad /*load*/) override {
    CudaStream& sums = branch_.fork(stream);
    CollectiveWords* words = watch_.limit().words;
    enqueue_begin(sums, words, start_ns_.view().data(), bucket);
    nccl_.all_reduce(sums, window_.view().subview(range));
    enqueue_end(sums, words, start_ns_.view().data());
  }

  void finish(CudaStream& stream) override { branch_.join(stream); }

  void throw_if_failed() override { watch_.throw_if_failed(); }
  double take_seconds() override { return watch_.take_busy_seconds(); }
  std::string name() const override { return "nccl"; }

 private:
  Nccl nccl_;
  CudaBuffer<float> window_;
  CudaBuffer<uint64_t> start_ns_;  ///< of the sum under way
  CollectiveWatch watch_;
  NcclGuard guard_;
  // Ahead of what backward still has to run: the other ranks wait.
  Branch<CudaDevice> branch_{StreamPriority::kHigh};
};

}  // namespace

std::unique_ptr<GpuTransport> make_nccl(Bootstrap& bootstrap, const PeerTable& peers,
                                        ControlPlane& control, const CommunicatorOptions& options) {
  return std::make_unique<NcclTransport>(bootstrap, peers, control, options);
}

}  // namespace lockstep
