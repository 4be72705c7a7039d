#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include "comm/cuda/collective_marks.h"
#include "comm/cuda/collective_watch.h"
#include "comm/cuda/gpu_transport.h"
#include "comm/cuda/staged_kernels.h"
#include "comm/shm_region.h"
#include "core/base/error.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

// Two megabytes take a copy engine 40 microseconds: long beside what the steps around a piece cost,
// short beside a bucket, of which one piece's copies to the host overlap with nothing.
constexpr int64_t kPieceElements = 512 * 1024;

/// Behind the window in a rank's region, in host memory that both GPUs address.
struct StagedFlags {
  alignas(64) Posted sent = 0;      ///< pieces that lie in the region's window
  alignas(64) Posted consumed = 0;  ///< rounds of sums that the other rank has read from there
};
constexpr int64_t kFlagElements = sizeof(StagedFlags) / sizeof(float);

/// A rank's region, page-locked for the GPU of this process.
class PinnedRegion {
 public:
  PinnedRegion(ShmRegion region, int64_t window_elements)
      : region_(std::move(region)), flags_at_((window_elements + 15) / 16 * 16) {
    check_cuda(cudaHostRegister(region_.window(), bytes(), cudaHostRegisterMapped),
               "locking the pages of memory shared by two ranks");
  }
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;
  PinnedRegion(PinnedRegion&&) = delete;
  PinnedRegion& operator=(PinnedRegion&&) = delete;
  ~PinnedRegion() { cudaHostUnregister(region_.window()); }

  static int64_t elements(int64_t window_elements) { return window_elements + 15 + kFlagElements; }

  float* window() const { return region_.window(); }
  StagedFlags* flags() const {
    return reinterpret_cast<StagedFlags*>(region_.window() + flags_at_);
  }

 private:
  size_t bytes() const { return static_cast<size_t>(flags_at_ + kFlagElements) * sizeof(float); }

  ShmRegion region_;
  int64_t flags_at_;
};

/// Each rank copies its range to host memory and reads the other's from there, piece by piece, with
/// both copy engines at work at once; both add. As many bytes cross the link each way as when each
/// adds one half and hands it back, with half the waits.
///
/// No order in which the driver runs what may run side by side can lock two ranks up: a rank waits
/// for piece c only behind its own post of piece c, so the first wait that is not met has its post
/// ahead of it on the other rank.
class Staged final : public GpuTransport {
 public:
  Staged(ControlPlane& control, const PeerTable& peers, const CommunicatorOptions& options,
         int rank, ShmRegion own, ShmRegion other)
      : other_rank_(1 - rank),
        window_(options.window_elements),
        own_(std::move(own), options.window_elements),
        other_(std::move(other), options.window_elements),
        posted_counts_(kPostedCounts),
        awaited_counts_(kAwaitedCounts),
        start_ns_(1),
        watch_(control, peers, options.collective_timeout) {
    for (Part& part : parts_) {
      part.values = CudaBuffer<float>(std::min(kPieceElements, options.window_elements));
    }
    // The first round waits for none before it.
    const uint32_t none = ~0U;
    copy_from_host(down_, awaited_counts_.view().subview({kRounds, kRounds + 1}), &none);
    down_.synchronize();
  }

  CudaView<float> window() override { return window_.view(); }

  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad /*load*/) override {
    ready_.record(stream);
    up_.wait(ready_);
    down_.wait(ready_);
    if (!under_way_) {
      enqueue_await(up_, awaited(kRounds), &own_.flags()->consumed, watch_.limit(), other_rank_,
                    bucket);
      under_way_ = true;
    }
    last_bucket_ = bucket;
    enqueue_begin(down_, watch_.limit().words, start_ns_.view().data(), bucket);
    for (Range piece{range.begin, range.begin}; piece.end < range.end; piece.begin = piece.end) {
      // Pieces end where a vector does.
      piece.end = std::min(range.end, (piece.begin / 4 * 4) + kPieceElements);
      exchange(piece, bucket);
    }
    for (Part& part : parts_) {
      wait_until_added(part);
    }
    enqueue_end(down_, watch_.limit().words, start_ns_.view().data());
  }

  void finish(CudaStream& stream) override {
    enqueue_compare(down_, posted(kSent), &other_.flags()->sent, watch_.limit().words, other_rank_,
                    last_bucket_);
    enqueue_post(down_, posted(kConsumed), &other_.flags()->consumed, 0);
    for (CudaStream* side : {&up_, &down_}) {
      ready_.record(*side);
      stream.wait(ready_);
    }
    under_way_ = false;
  }

  void throw_if_failed() override { watch_.throw_if_failed(); }
  double take_seconds() override { return watch_.take_busy_seconds(); }
  std::string name() const override { return "staged"; }

 private:
  enum PostedCount : int64_t { kSent, kConsumed, kPostedCounts };
  Posted* posted(PostedCount which) { return posted_counts_.view().data() + which; }
  enum AwaitedCount : int64_t { kPieces, kRounds, kAwaitedCounts };
  uint32_t* awaited(AwaitedCount which) { return awaited_counts_.view().data() + which; }

  /// A piece of the other rank's, while it is added.
  struct Part {
    CudaBuffer<float> values;
    CudaEvent read;
    CudaEvent added;
    bool busy = false;  ///< since the last wait_until_added
  };

  void exchange(Range piece, int bucket) {
    copy_to_host(up_, own_.window() + piece.begin,
                 CudaView<const float>(window_.view().subview(piece)));
    enqueue_post(up_, posted(kSent), &own_.flags()->sent, subject(piece, bucket));
    sent_.record(up_);

    down_.wait(sent_);
    enqueue_await(down_, awaited(kPieces), &other_.flags()->sent, watch_.limit(), other_rank_,
                  bucket);
    Part& part = parts_[next_part_++ % parts_.size()];
    wait_until_added(part);
    const CudaView<float> values = part.values.view().subview({0, piece.size()});
    copy_from_host(down_, values, other_.window() + piece.begin);
    part.read.record(down_);
    adds_.wait(part.read);
    enqueue_add(adds_, window_.view().subview(piece), CudaView<const float>(values));
    part.added.record(adds_);
    part.busy = true;
  }

  void wait_until_added(Part& part) {
    if (std::exchange(part.busy, false)) {
      down_.wait(part.added);
    }
  }

  int other_rank_;
  CudaBuffer<float> window_;
  PinnedRegion own_;
  PinnedRegion other_;
  CudaBuffer<Posted> posted_counts_;
  CudaBuffer<uint32_t> awaited_counts_;
  CudaBuffer<uint64_t> start_ns_;
  CudaStream up_{Precision::kFp32, StreamPriority::kHigh};    ///< to the host
  CudaStream down_{Precision::kFp32, StreamPriority::kHigh};  ///< from the host
  CudaStream adds_{Precision::kFp32, StreamPriority::kHigh};
  std::array<Part, 2> parts_;
  size_t next_part_ = 0;
  CudaEvent ready_;
  CudaEvent sent_;
  int last_bucket_ = -1;
  bool under_way_ = false;  ///< a sum was enqueued since the last finish()
  CollectiveWatch watch_;   ///< its end comes first: it waits for the GPU
};

}  // namespace

std::unique_ptr<GpuTransport> make_staged(Bootstrap& bootstrap, const PeerTable& peers,
                                          ControlPlane& control,
                                          const CommunicatorOptions& options) {
  if (peers.size() != 2 || peers[0].host_id != peers[1].host_id) {
    return nullptr;
  }
  ShmRegion own = ShmRegion::create(PinnedRegion::elements(options.window_elements));
  const std::vector<std::string> addresses = bootstrap.all_gather(own.address());
  std::optional<ShmRegion> other = ShmRegion::open(addresses[bootstrap.rank() == 0 ? 1 : 0]);
  const std::vector<std::string> maps = bootstrap.all_gather(other ? "yes" : "no");
  if (maps[0] != "yes" || maps[1] != "yes") {
    return nullptr;
  }
  return std::make_unique<Staged>(control, peers, options, bootstrap.rank(), std::move(own),
                                  *std::move(other));
}

}  // namespace lockstep
