#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "comm/transport.h"
#include "core/base/file.h"

/// Links that lie. FaultySendEdge does wrong to whole messages of any transport, FaultyRelay to
/// single bytes between two sockets.
namespace lockstep {

enum class Fault { kDrop, kRepeat, kDelay, kDie };

/// A sending end that does wrong to its published range number `at` (from 0).
class FaultySendEdge final : public SendEdge {
 public:
  FaultySendEdge(std::unique_ptr<SendEdge> edge, Fault fault, int at)
      : edge_(std::move(edge)), fault_(fault), at_(at) {}

  void begin(const CollectiveHeader& header) override {
    if (edge_) {
      edge_->begin(header);
    }
  }
  void publish(Range range) override {
    const bool now = published_++ == at_;
    if (now && fault_ == Fault::kDelay) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (now && fault_ == Fault::kDie) {
      edge_.reset();
    }
    if (edge_ && !(now && fault_ == Fault::kDrop)) {
      edge_->publish(range);
    }
    if (edge_ && now && fault_ == Fault::kRepeat) {
      edge_->publish(range);
    }
  }
  bool flush() override { return !edge_ || edge_->flush(); }
  bool drained() override { return !edge_ || edge_->drained(); }
  Readiness readiness() const override { return edge_ ? edge_->readiness() : Readiness{}; }
  void sleep(std::chrono::microseconds limit) override {
    if (edge_) {
      edge_->sleep(limit);
    }
  }

 private:
  std::unique_ptr<SendEdge> edge_;
  Fault fault_;
  int at_;
  int published_ = 0;
};

/// Carries bytes from one socket to another on a thread of its own and, at a byte offset of the
/// stream, flips a bit, leaves a byte out, or ends the stream.
class FaultyRelay {
 public:
  enum class Lie { kNone, kFlip, kLeaveOut, kTruncate };

  FaultyRelay(Lie lie, size_t at) {
    std::array<int, 2> from{};
    std::array<int, 2> to{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, from.data()) != 0 ||
        ::socketpair(AF_UNIX, SOCK_STREAM, 0, to.data()) != 0) {
      std::abort();
    }
    sender_ = UniqueFd(from[0]);
    receiver_ = UniqueFd(to[1]);
    thread_ = std::thread(
        [lie, at, in = UniqueFd(from[1]), out = UniqueFd(to[0])] { carry(in, out, lie, at); });
  }
  /// After both edges are gone.
  ~FaultyRelay() { thread_.join(); }
  FaultyRelay(const FaultyRelay&) = delete;
  FaultyRelay& operator=(const FaultyRelay&) = delete;
  FaultyRelay(FaultyRelay&&) = delete;
  FaultyRelay& operator=(FaultyRelay&&) = delete;

  UniqueFd take_sender() { return std::move(sender_); }
  UniqueFd take_receiver() { return std::move(receiver_); }

 private:
  static void carry(const UniqueFd& in, const UniqueFd& out, Lie lie, size_t at) {
    std::array<char, 1000> bytes{};
    size_t offset = 0;
    while (true) {
      const ssize_t got = ::read(in.get(), bytes.data(), bytes.size());
      if (got <= 0) {
        return;
      }
      auto count = static_cast<size_t>(got);
      const size_t here = at - offset;
      offset += count;
      if (here < count && lie == Lie::kFlip) {
        bytes[here] = static_cast<char>(bytes[here] ^ 16);
      } else if (here < count && lie == Lie::kLeaveOut) {
        std::copy(bytes.begin() + here + 1, bytes.begin() + count, bytes.begin() + here);
        --count;
      } else if (here < count && lie == Lie::kTruncate) {
        count = here;
      }
      if (::send(out.get(), bytes.data(), count, MSG_NOSIGNAL) != static_cast<ssize_t>(count) ||
          (here < count + 1 && lie == Lie::kTruncate)) {
        return;
      }
    }
  }

  UniqueFd sender_;
  UniqueFd receiver_;
  std::thread thread_;
};

}  // namespace lockstep
