#include "comm/shm_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/device/cpu_device.h"
#include "kernels/reduce.h"

namespace lockstep {
namespace {

// Two blocks, of this rank's window and of the peer's, stay in the L1 cache between the addition
// and the copy back.
constexpr int64_t kWriteThroughBlock = 2048;

ShmChannel& channel_of(const ShmRegion& region, int lane) {
  return region.control().channels[static_cast<size_t>(lane)];
}

class ShmSendEdge final : public SendEdge {
 public:
  ShmSendEdge(std::shared_ptr<const ShmRegion> own, int lane, bool write_through)
      : own_(std::move(own)), channel_(channel_of(*own_, lane)), write_through_(write_through) {}

  bool can_begin() override {
    return channel_.consumed.value() >= header_messages_[(sequence_ + 1) % ShmChannel::kHeaders];
  }
  void begin(const CollectiveHeader& header) override {
    sequence_ = header.sequence;
    sums_come_back_ = write_through_ && header.kind == CollectiveKind::kAllReduce;
    channel_.headers[sequence_ % ShmChannel::kHeaders] = header;
    post();
    header_messages_[sequence_ % ShmChannel::kHeaders] = published_;
  }
  void publish(Range /*range*/) override { post(); }
  bool flush() override { return true; }
  bool drained() override { return channel_.consumed.value() >= to_be_consumed_; }
  void sleep(std::chrono::microseconds limit) override {
    const uint64_t seen = channel_.consumed.value();
    if (seen < published_) {
      channel_.consumed.sleep_while(seen, limit);
    }
  }

 private:
  void post() {
    channel_.published.post(++published_);
    if (!sums_come_back_) {
      to_be_consumed_ = published_;
    }
  }

  std::shared_ptr<const ShmRegion> own_;
  ShmChannel& channel_;
  bool write_through_;
  /// In an all-reduce with write-through the successor reads a range before it sends the sum of it,
  /// which this rank has waited for.
  bool sums_come_back_ = false;
  uint64_t sequence_ = 0;
  uint64_t published_ = 0;
  uint64_t to_be_consumed_ = 0;  ///< messages, before the window may be changed
  std::array<uint64_t, ShmChannel::kHeaders> header_messages_{};  ///< the one of each header
};

class ShmRecvEdge final : public RecvEdge {
 public:
  ShmRecvEdge(std::shared_ptr<const ShmRegion> own, std::shared_ptr<const ShmRegion> peer, int lane,
              bool write_through)
      : own_(std::move(own)),
        peer_(std::move(peer)),
        channel_(channel_of(*peer_, lane)),
        write_through_(write_through) {}

  bool try_begin(CollectiveHeader* header) override {
    if (!arrived()) {
      return false;
    }
    *header = channel_.headers[++sequence_ % ShmChannel::kHeaders];
    stores_both_ = write_through_ && header->kind == CollectiveKind::kAllReduce;
    ++consumed_;
    return true;
  }

  bool try_reduce(Range range) override {
    if (!arrived()) {
      return false;
    }
    if (stores_both_) {
      for (int64_t begin = range.begin; begin < range.end; begin += kWriteThroughBlock) {
        const Range block = {begin, std::min(begin + kWriteThroughBlock, range.end)};
        add_into(stream_, {own_->window() + begin, block.size()},
                 {peer_->window() + begin, block.size()});
        copy(peer_->window(), own_->window(), block);
      }
    } else {
      add_into(stream_, {own_->window() + range.begin, range.size()},
               {peer_->window() + range.begin, range.size()});
    }
    ++consumed_;
    return true;
  }

  bool try_copy(Range range) override {
    if (!arrived()) {
      return false;
    }
    if (!stores_both_) {
      copy(own_->window(), peer_->window(), range);
    }
    ++consumed_;
    return true;
  }

  void end() override { channel_.consumed.post(consumed_); }

  void sleep(std::chrono::microseconds limit) override {
    if (!arrived()) {
      channel_.published.sleep_while(consumed_, limit);
    }
  }

 private:
  bool arrived() const { return channel_.published.value() > consumed_; }
  static void copy(float* to, const float* from, Range range) {
    std::memcpy(to + range.begin, from + range.begin,
                static_cast<size_t>(range.size()) * sizeof(float));
  }

  std::shared_ptr<const ShmRegion> own_;
  std::shared_ptr<const ShmRegion> peer_;
  ShmChannel& channel_;
  bool write_through_;
  bool stores_both_ = false;  ///< write-through, in this collective
  CpuStream stream_;
  uint64_t sequence_ = 0;
  uint64_t consumed_ = 0;
};

}  // namespace

std::unique_ptr<SendEdge> make_shm_send_edge(std::shared_ptr<const ShmRegion> own, int lane,
                                             bool write_through) {
  return std::make_unique<ShmSendEdge>(std::move(own), lane, write_through);
}

std::unique_ptr<RecvEdge> make_shm_recv_edge(std::shared_ptr<const ShmRegion> own,
                                             std::shared_ptr<const ShmRegion> peer, int lane,
                                             bool write_through) {
  return std::make_unique<ShmRecvEdge>(std::move(own), std::move(peer), lane, write_through);
}

}  // namespace lockstep
