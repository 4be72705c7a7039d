#include "comm/shm_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/device/cpu_device.h"
#include "kernels/reduce.h"

namespace lockstep {
namespace {

// Two blocks, of this rank's window and of the peer's, stay in the L1 cache between the addition
// and the copy back.
constexpr int64_t kWriteThroughBlock = 2048;

class ShmSendEdge final : public SendEdge {
 public:
  ShmSendEdge(std::shared_ptr<const ShmRegion> own, bool write_through)
      : own_(std::move(own)), write_through_(write_through) {}

  void begin(const CollectiveHeader& header) override {
    own_->control().headers[header.sequence % ShmControl::kHeaders] = header;
    own_->control().published.post(++published_);
  }
  void publish(Range /*range*/) override { own_->control().published.post(++published_); }
  bool flush() override { return true; }
  // With write-through the successor reads a range before it sends the sum of it, which this rank
  // has waited for.
  bool drained() override {
    return write_through_ || own_->control().consumed.value() >= published_;
  }
  void sleep(std::chrono::microseconds limit) override {
    const uint64_t seen = own_->control().consumed.value();
    if (seen < published_) {
      own_->control().consumed.sleep_while(seen, limit);
    }
  }

 private:
  std::shared_ptr<const ShmRegion> own_;
  bool write_through_;
  uint64_t published_ = 0;
};

class ShmRecvEdge final : public RecvEdge {
 public:
  ShmRecvEdge(std::shared_ptr<const ShmRegion> own, std::shared_ptr<const ShmRegion> peer,
              bool write_through)
      : own_(std::move(own)), peer_(std::move(peer)), write_through_(write_through) {}

  bool try_begin(CollectiveHeader* header) override {
    if (!arrived()) {
      return false;
    }
    *header = peer_->control().headers[++sequence_ % ShmControl::kHeaders];
    ++consumed_;
    return true;
  }

  bool try_reduce(Range range) override {
    if (!arrived()) {
      return false;
    }
    if (write_through_) {
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
    if (!write_through_) {
      copy(own_->window(), peer_->window(), range);
    }
    ++consumed_;
    return true;
  }

  void end() override { peer_->control().consumed.post(consumed_); }

  void sleep(std::chrono::microseconds limit) override {
    if (!arrived()) {
      peer_->control().published.sleep_while(consumed_, limit);
    }
  }

 private:
  bool arrived() const { return peer_->control().published.value() > consumed_; }
  static void copy(float* to, const float* from, Range range) {
    std::memcpy(to + range.begin, from + range.begin,
                static_cast<size_t>(range.size()) * sizeof(float));
  }

  std::shared_ptr<const ShmRegion> own_;
  std::shared_ptr<const ShmRegion> peer_;
  bool write_through_;
  CpuStream stream_;
  uint64_t sequence_ = 0;
  uint64_t consumed_ = 0;
};

}  // namespace

std::unique_ptr<SendEdge> make_shm_send_edge(std::shared_ptr<const ShmRegion> own,
                                             bool write_through) {
  return std::make_unique<ShmSendEdge>(std::move(own), write_through);
}

std::unique_ptr<RecvEdge> make_shm_recv_edge(std::shared_ptr<const ShmRegion> own,
                                             std::shared_ptr<const ShmRegion> peer,
                                             bool write_through) {
  return std::make_unique<ShmRecvEdge>(std::move(own), std::move(peer), write_through);
}

}  // namespace lockstep
