#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include "comm/cuda/collective_watch.h"
#include "comm/cuda/gpu_transport.h"
#include "comm/cuda/staged_kernels.h"
#include "comm/cuda/staged_region.h"
#include "comm/gpu_transport_select.h"
#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

/// Up to this size one kernel is faster than copies, between which a dozen steps wait for each
/// other. It reads more slowly from the host, and takes multiprocessors.
int64_t most_exchange_bytes(SumLoad load) {
  return (load == SumLoad::kAlone ? 4 : 1) << 20;
}

/// Two ranks send each other what they have, and both add: as many bytes cross each link each way
/// as when each adds one half and hands it back, in one trip instead of two.
///
/// A large sum goes in pieces. A rank copies its piece to a slot in the host, meets the other rank,
/// copies the other's piece from its slot, and adds it. The copies of either direction and what
/// runs between them are on streams of their own, so that both copy engines are at work at once,
/// from one sum to the next.
///
/// No order in which the driver runs what may run side by side can lock two ranks up: a rank tells
/// that it has come to a meeting before it waits there, and what it does before depends on earlier
/// meetings alone. So the rank that waits at the earlier one has the other's word.
class StagedTransport final : public GpuTransport {
 public:
  StagedTransport(ControlPlane& control, const PeerTable& peers, const CommunicatorOptions& options,
                  int rank, ShmRegion own, ShmRegion other)
      : window_elements_(options.window_elements),
        // Whole packs: the last one is read whole.
        window_((options.window_elements + kPackElements - 1) / kPackElements * kPackElements),
        own_(std::move(own)),
        other_(std::move(other)),
        watch_(control, peers, options.collective_timeout) {
    const PeerCounts counts = first_peer_counts();
    copy_from_host(kernels_, counts_.view(), &counts);
    kernels_.synchronize();
    everyone_.ranks = 2;
    everyone_.rank = rank;
    everyone_.words[rank] = &own_->words;
    everyone_.words[1 - rank] = &other_->words;
    everyone_.windows[rank] = window_.view().data();
    everyone_.counts = counts_.view().data();
    everyone_.limit = watch_.limit();
  }

  CudaView<float> window() override { return window_.view().subview({0, window_elements_}); }

  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad load) override {
    PeerSum sum = everyone_;
    sum.range = range;
    sum.bucket = bucket;
    ready_.record(stream);
    close();
    kernels_.wait(ready_);
    if (range.size() * static_cast<int64_t>(sizeof(float)) <= most_exchange_bytes(load)) {
      launch_exchange(kernels_.handle(), sum, own_->mailboxes, other_->mailboxes);
    } else {
      copy_and_add(sum);
    }
  }

  void finish(CudaStream& stream) override {
    add_coming();
    close();
    done_.record(kernels_);
    stream.wait(done_);
    pieces_ = 0;
  }

  void throw_if_failed() override { watch_.throw_if_failed(); }
  double take_seconds() override { return watch_.take_busy_seconds(); }
  std::string name() const override { return gpu_transport_name(GpuTransportKind::kStaged); }

 private:
  /// A piece of the other rank's on its way from the host.
  struct Piece {
    Range range;
    CudaView<const float> values;
  };

  void copy_and_add(const PeerSum& sum) {
    launch_open(kernels_.handle(), sum);
    if (pieces_ == 0) {
      // The other rank has come to this round: it has read all pieces of the one before.
      opened_.record(kernels_);
      to_host_.wait(opened_);
    }
    to_host_.wait(ready_);
    for (Range piece{sum.range.begin, sum.range.begin}; piece.end < sum.range.end;
         piece.begin = piece.end) {
      const int64_t most = std::min(kFirstPieceElements * (pieces_ + 1), kMostPieceElements);
      // Pieces end where a pack does.
      piece.end = std::min(sum.range.end, (piece.begin + most) / kPackElements * kPackElements);
      exchange(sum, piece);
    }
    open_ = sum;
  }

  void exchange(const PeerSum& sum, Range piece) {
    const auto slot = static_cast<size_t>(pieces_ % kPieceSlots);
    const auto part = static_cast<size_t>(pieces_ % 2);
    if (pieces_ >= 2) {
      // The other rank came to the meeting of two pieces ago when it had added the piece of four
      // ago, which this slot held.
      to_host_.wait(met_[part]);
    }
    copy_to_host(to_host_, own_->pieces[slot],
                 CudaView<const float>(window_.view().subview(piece)));
    copied_.record(to_host_);
    kernels_.wait(copied_);
    launch_meet(kernels_.handle(), sum);
    met_[part].record(kernels_);
    // What the part held was added before this meeting.
    from_host_.wait(met_[part]);
    add_coming();
    const CudaView<float> values = parts_[part].view().subview({0, piece.size()});
    copy_from_host(from_host_, values, other_->pieces[slot]);
    came_.record(from_host_);
    coming_ = {piece, values};
    ++pieces_;
  }

  /// Adds the piece that is on its way, when it is there.
  void add_coming() {
    if (coming_) {
      kernels_.wait(came_);
      add_into(kernels_, window_.view().subview(coming_->range), coming_->values);
      coming_.reset();
    }
  }

  /// Ends the last sum by copies, as far as others are told: its last piece may still be on its way
  /// while the next sum begins.
  void close() {
    if (open_) {
      launch_close(kernels_.handle(), *open_);
      open_.reset();
    }
  }

  int64_t window_elements_;
  CudaBuffer<float> window_;
  PinnedRegion own_;
  PinnedRegion other_;
  CudaBuffer<PeerCounts> counts_{1};
  std::array<CudaBuffer<float>, 2> parts_{CudaBuffer<float>(kMostPieceElements),
                                          CudaBuffer<float>(kMostPieceElements)};
  // Ahead of what backward still has to run: the other rank waits.
  CudaStream kernels_{Precision::kFp32, StreamPriority::kHigh};
  CudaStream to_host_{Precision::kFp32, StreamPriority::kHigh};
  CudaStream from_host_{Precision::kFp32, StreamPriority::kHigh};
  CudaEvent ready_;
  CudaEvent opened_;
  CudaEvent copied_;
  std::array<CudaEvent, 2> met_;
  CudaEvent came_;
  CudaEvent done_;
  std::optional<Piece> coming_;
  std::optional<PeerSum> open_;
  int64_t pieces_ = 0;     ///< since the last finish()
  PeerSum everyone_{};     ///< all but the range and the bucket
  CollectiveWatch watch_;  ///< its end comes first: it waits for the GPU
};

}  // namespace

std::unique_ptr<GpuTransport> make_staged(Bootstrap& bootstrap, const PeerTable& peers,
                                          ControlPlane& control,
                                          const CommunicatorOptions& options) {
  ShmRegion own = ShmRegion::create(kStagedRegionElements);
  new (own.window()) PeerWords(*first_peer_words());
  const std::vector<std::string> addresses = bootstrap.all_gather(own.address());
  std::optional<ShmRegion> other = ShmRegion::open(addresses[bootstrap.rank() == 0 ? 1 : 0]);
  const std::vector<std::string> maps = bootstrap.all_gather(other ? "yes" : "no");
  if (maps[0] != "yes" || maps[1] != "yes") {
    return nullptr;
  }
  return std::make_unique<StagedTransport>(control, peers, options, bootstrap.rank(),
                                           std::move(own), *std::move(other));
}

}  // namespace lockstep
