#include "comm/cuda/communicator.h"

#include <utility>

#include "comm/agreement.h"
#include "comm/cuda/gpu_transport.h"
#include "comm/cuda/peer_probe.h"
#include "comm/gpu_transport_select.h"
#include "comm/transport_select.h"
#include "core/base/error.h"
#include "core/base/log.h"

namespace lockstep {
namespace {

/// What select_gpu_transport gives. Collective.
std::unique_ptr<GpuTransport> make_transport(Bootstrap& bootstrap, const PeerTable& peers,
                                             ControlPlane& control,
                                             const CommunicatorOptions& options) {
  const TransportChoice choice = options.transport;
  GpuPaths paths;
  if (may_use_peers(choice)) {
    paths.peer_problem = peer_problem(peers, [&] { return probe_peers(bootstrap, peers); });
  }
  if (options.copy_engines) {
    check_copies(peers, choice, paths);
  }
  if (choice == TransportChoice::kNccl) {
    return make_nccl(bootstrap, peers, control, options);
  }
  const auto selected = [&] { return select_gpu_transport(peers, choice, paths); };
  if (selected() == GpuTransportKind::kPeer) {
    return make_peer(bootstrap, peers, control, options);
  }
  if (bootstrap.rank() == 0 && !paths.peer_problem.empty()) {
    log("sums do not use peer access: {}", paths.peer_problem);
  }
  if (selected() == GpuTransportKind::kStaged) {
    if (auto staged = make_staged(bootstrap, peers, control, options)) {
      return staged;
    }
    paths.maps_host_memory = false;
  }
  LOCKSTEP_CHECK(selected() == GpuTransportKind::kHostRing, "no other transport is left");
  return make_host_ring(bootstrap, peers, control, options);
}

}  // namespace

struct Communicator<CudaDevice>::Impl {
  Impl(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
       const CommunicatorOptions& options) {
    check_agreement(bootstrap, {{"gradient window", std::to_string(options.window_elements)},
                                {"--transport", transport_word(options.transport)},
                                {"--copy-engines", options.copy_engines ? "yes" : "no"}});
    if (bootstrap.world_size() > 1) {
      transport = make_transport(bootstrap, peers, control, options);
      window = transport->window();
    } else {
      alone = CudaBuffer<float>(options.window_elements);
      window = alone.view();
    }
  }

  using Collective = void (GpuTransport::*)(CudaStream&, Range, int, SumLoad);

  void enqueue(Collective collective, CudaStream& stream, Range range, int bucket, SumLoad load) {
    LOCKSTEP_CHECK(range.begin >= 0 && range.begin <= range.end && range.end <= window.size(),
                   "[{}, {}) of a window of {} elements", range.begin, range.end, window.size());
    if (!transport) {
      return;
    }
    transport->throw_if_failed();
    if (range.empty()) {
      return;
    }
    for (const Range& other : unfinished) {
      LOCKSTEP_CHECK(range.end <= other.begin || other.end <= range.begin,
                     "[{}, {}) is in a collective that is not finished", range.begin, range.end);
    }
    (transport.get()->*collective)(stream, range, bucket, load);
    unfinished.push_back(range);
  }

  CudaView<float> window;
  CudaBuffer<float> alone;                  ///< the window of one rank
  std::unique_ptr<GpuTransport> transport;  ///< with several ranks
  std::vector<Range> unfinished;            ///< enqueued since the last finish()
};

Communicator<CudaDevice>::Communicator(Bootstrap& bootstrap, const PeerTable& peers,
                                       ControlPlane& control, const CommunicatorOptions& options)
    : impl_(std::make_unique<Impl>(bootstrap, peers, control, options)) {}

Communicator<CudaDevice>::~Communicator() = default;

CudaView<float> Communicator<CudaDevice>::window() {
  return impl_->window;
}

void Communicator<CudaDevice>::all_reduce(CudaStream& stream, Range range, int bucket,
                                          SumLoad load) {
  impl_->enqueue(&GpuTransport::all_reduce, stream, range, bucket, load);
}

void Communicator<CudaDevice>::reduce_scatter(CudaStream& stream, Range range, int bucket,
                                              SumLoad load) {
  impl_->enqueue(&GpuTransport::reduce_scatter, stream, range, bucket, load);
}

void Communicator<CudaDevice>::all_gather(CudaStream& stream, Range range, int bucket,
                                          SumLoad load) {
  impl_->enqueue(&GpuTransport::all_gather, stream, range, bucket, load);
}

void Communicator<CudaDevice>::finish(CudaStream& stream) {
  Impl& m = *impl_;
  if (m.unfinished.empty()) {
    return;
  }
  m.transport->throw_if_failed();
  m.transport->finish(stream);
  m.unfinished.clear();
}

CommTimes Communicator<CudaDevice>::take_times() {
  if (!impl_->transport) {
    return {};
  }
  impl_->transport->throw_if_failed();
  return {.total_seconds = impl_->transport->take_seconds()};
}

std::string Communicator<CudaDevice>::transport_name() const {
  return impl_->transport ? impl_->transport->name() : "none";
}

bool Communicator<CudaDevice>::has_shards() const {
  return !impl_->transport || impl_->transport->has_shards();
}

}  // namespace lockstep
