#include "comm/socket_transport.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "comm/page_pipe.h"
#include "comm/socket_frame.h"
#include "core/base/error.h"
#include "kernels/reduce.h"

namespace lockstep {
namespace {

// The pieces of memory of one sendmsg or recvmsg.
class Pieces {
 public:
  static constexpr size_t kMost = 16;

  void add(void* data, size_t bytes) {
    if (bytes > 0) {
      pieces_[count_++] = {data, bytes};
    }
  }
  bool full() const { return count_ + 2 > kMost; }
  msghdr message() {
    msghdr message{};
    message.msg_iov = pieces_.data();
    message.msg_iovlen = count_;
    return message;
  }

 private:
  std::array<iovec, kMost> pieces_{};
  size_t count_ = 0;
};

[[noreturn]] void throw_broken() {
  throw PeerLostError("the connection broke: {}", std::strerror(errno));
}

// What a send or a receive that does not wait has moved; 0 when it would have to wait. `call` is
// repeated after signals.
template <class Call>
size_t moved(Call call) {
  ssize_t count = 0;
  do {
    count = call();
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno != EAGAIN) {
    throw_broken();
  }
  return count < 0 ? 0 : static_cast<size_t>(count);
}

template <class Call>
size_t received(Call call) {
  bool closed = false;
  const size_t count = moved([&] {
    const ssize_t result = call();
    closed = result == 0;
    return result;
  });
  if (closed) {
    throw PeerLostError("the connection was closed");
  }
  return count;
}

class SocketSendEdge final : public SendEdge {
 public:
  SocketSendEdge(UniqueFd socket, CpuView<const float> window, SocketPath path)
      : socket_(std::move(socket)), window_(window), path_(path) {
    if (path == SocketPath::kLoopback) {
      pages_.emplace();
    }
  }

  void begin(const CollectiveHeader& header) override {
    ++begun_;
    sequence_ = header.sequence;
    Frame frame;
    frame.kind = Frame::kHeader;
    frame.element_bytes = header.element_bytes;
    frame.begin = header.range.begin;
    frame.end = header.range.end;
    frame.bucket = header.bucket;
    frame.collective = static_cast<uint32_t>(header.kind);
    enqueue(frame, {});
  }

  void publish(Range range) override {
    const CpuView<const float> data = window_.subview(range);
    Frame frame;
    frame.begin = range.begin;
    frame.end = range.end;
    frame.data_check = path_ == SocketPath::kNetwork ? check_of(data) : 0;
    enqueue(frame, data);
  }

  bool flush() override {
    while (!queue_.empty()) {
      const size_t sent = pages_ ? send_pages() : send_copies();
      if (sent == 0) {
        return false;
      }
      forget(sent);
    }
    return true;
  }

  bool drained() override { return flush() && (path_ == SocketPath::kNetwork || acknowledged()); }

  Readiness readiness() const override {
    return queue_.empty() ? Readiness{} : Readiness{socket_.get(), POLLOUT};
  }

  void sleep(std::chrono::microseconds limit) override {
    pollfd acknowledgement = {socket_.get(), POLLIN, 0};
    ::poll(&acknowledgement, 1, static_cast<int>(limit.count() / 1000));
  }

 private:
  struct Message {
    Frame frame;
    CpuView<const float> data;
    size_t bytes() const { return sizeof(Frame) + bytes_of(data); }
  };

  void enqueue(Frame frame, CpuView<const float> data) {
    frame.message = ++messages_;
    frame.sequence = sequence_;
    frame.frame_check = check_of(frame);
    queue_.push_back({frame, data});
  }

  // As much of the queue as one call takes; the bytes sent, 0 when the socket is full.
  size_t send_copies() {
    Pieces pieces;
    size_t skip = sent_of_first_;
    for (Message& message : queue_) {
      if (pieces.full()) {
        break;
      }
      const size_t skip_frame = std::min(skip, sizeof(Frame));
      pieces.add(reinterpret_cast<std::byte*>(&message.frame) + skip_frame,
                 sizeof(Frame) - skip_frame);
      // sendmsg does not write to what its non-const pointers name.
      auto* data = const_cast<float*>(message.data.data());
      pieces.add(reinterpret_cast<std::byte*>(data) + (skip - skip_frame),
                 message.bytes() - sizeof(Frame) - (skip - skip_frame));
      skip = 0;
    }
    const msghdr header = pieces.message();
    return moved([&] { return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT); });
  }

  // The same of the first message alone: a copy of its frame, and its data by reference.
  size_t send_pages() {
    const Message& first = queue_.front();
    if (sent_of_first_ < sizeof(Frame)) {
      const auto frame = std::as_bytes(std::span(&first.frame, 1)).subspan(sent_of_first_);
      const int more = first.data.empty() ? 0 : MSG_MORE;
      return moved([&] {
        return ::send(socket_.get(), frame.data(), frame.size(),
                      MSG_NOSIGNAL | MSG_DONTWAIT | more);
      });
    }
    const auto data = std::as_bytes(std::span(first.data.begin(), first.data.end()));
    const std::optional<size_t> sent = pages_->send(
        socket_.get(), data.subspan(sent_of_first_ - sizeof(Frame)), queue_.size() > 1);
    if (sent) {
      return *sent;
    }
    pages_.reset();
    return send_copies();
  }

  // Whether the receiver is done with everything begun.
  bool acknowledged() {
    std::array<std::byte, 64> bytes{};
    while (ended_ < begun_) {
      const size_t count =
          received([&] { return ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT); });
      if (count == 0) {
        return false;
      }
      ended_ += count;
    }
    return true;
  }

  void forget(size_t sent) {
    sent += sent_of_first_;
    while (!queue_.empty() && sent >= queue_.front().bytes()) {
      sent -= queue_.front().bytes();
      queue_.pop_front();
    }
    sent_of_first_ = sent;
  }

  UniqueFd socket_;
  CpuView<const float> window_;
  SocketPath path_;
  std::optional<PagePipe> pages_;  ///< while data can go by reference
  std::deque<Message> queue_;
  size_t sent_of_first_ = 0;  ///< bytes of the queue's first message
  uint64_t begun_ = 0;        ///< collectives
  uint64_t ended_ = 0;        ///< of them at the receiver, as far as it was asked for
  uint64_t messages_ = 0;
  uint64_t sequence_ = 0;
};

class SocketRecvEdge final : public RecvEdge {
 public:
  SocketRecvEdge(UniqueFd socket, CpuView<float> window, SocketPath path)
      : socket_(std::move(socket)),
        window_(window),
        path_(path),
        arrived_(kSocketSegmentElements) {}

  bool try_begin(CollectiveHeader* header) override {
    if (!receive(Frame::kHeader, {})) {
      return false;
    }
    sequence_ = frame_.sequence;
    *header = {frame_.sequence,
               {frame_.begin, frame_.end},
               frame_.element_bytes,
               frame_.bucket,
               static_cast<CollectiveKind>(frame_.collective)};
    next_message(sizeof(Frame));
    return true;
  }

  bool try_reduce(Range range) override {
    LOCKSTEP_CHECK(range.size() <= arrived_.size(), "{} elements", range.size());
    const CpuView<float> data = arrived_.view().subview({0, range.size()});
    if (!receive_range(range, data)) {
      return false;
    }
    add_into(stream_, window_.subview(range), data);
    return true;
  }

  bool try_copy(Range range) override { return receive_range(range, window_.subview(range)); }

  void end() override {
    if (path_ == SocketPath::kLoopback) {
      const std::byte done{1};
      moved([&] { return ::send(socket_.get(), &done, 1, MSG_NOSIGNAL | MSG_DONTWAIT); });
    }
  }
  Readiness readiness() const override { return {socket_.get(), POLLIN}; }
  void sleep(std::chrono::microseconds /*limit*/) override {}

 private:
  bool receive_range(Range range, CpuView<float> data) {
    if (!receive(Frame::kData, data, range)) {
      return false;
    }
    if (path_ == SocketPath::kNetwork && check_of(data) != frame_.data_check) {
      throw PeerLostError("elements [{}, {}) were altered on the way: their checksum is wrong",
                          range.begin, range.end);
    }
    next_message(sizeof(Frame) + bytes_of(data));
    return true;
  }

  // Receives the frame and `data` of the next message, in as many calls as it takes; true when both
  // are whole. One system call usually takes the rest of a message and the frame of the following
  // one.
  bool receive(Frame::Kind kind, CpuView<float> data, Range range = {}) {
    const size_t whole = sizeof(Frame) + bytes_of(data);
    while (true) {
      const size_t of_frame = std::min(received_, sizeof(Frame));
      if (of_frame == sizeof(Frame)) {
        check_frame(kind, range);
      }
      if (received_ >= whole) {
        return true;
      }
      Pieces pieces;
      pieces.add(reinterpret_cast<std::byte*>(&frame_) + of_frame, sizeof(Frame) - of_frame);
      pieces.add(reinterpret_cast<std::byte*>(data.data()) + (received_ - of_frame),
                 whole - sizeof(Frame) - (received_ - of_frame));
      pieces.add(&next_, sizeof(Frame));
      const size_t count = receive_some(pieces);
      if (count == 0) {
        return false;
      }
      received_ += count;
    }
  }

  void check_frame(Frame::Kind kind, Range range) const {
    if (frame_.frame_check != check_of(frame_) || frame_.message != messages_ + 1 ||
        frame_.kind != kind || !is_collective_kind(frame_.collective)) {
      throw PeerLostError("message {} was altered, lost or repeated on the way", messages_ + 1);
    }
    if (kind == Frame::kData &&
        (frame_.sequence != sequence_ || frame_.begin != range.begin || frame_.end != range.end)) {
      throw PeerLostError(
          "the connection carried elements [{}, {}) of collective {} instead of [{}, {}) of {}",
          frame_.begin, frame_.end, frame_.sequence, range.begin, range.end, sequence_);
    }
  }

  void next_message(size_t whole) {
    ++messages_;
    received_ -= whole;
    frame_ = next_;
  }

  size_t receive_some(Pieces& pieces) {
    msghdr header = pieces.message();
    return received([&] { return ::recvmsg(socket_.get(), &header, MSG_DONTWAIT); });
  }

  UniqueFd socket_;
  CpuView<float> window_;
  SocketPath path_;
  CpuBuffer<float> arrived_;  ///< what is to be added
  CpuStream stream_;
  Frame frame_;          ///< of the message that is being received
  Frame next_;           ///< of the message after it, as far as it came along
  size_t received_ = 0;  ///< bytes of the message, and beyond it of next_
  uint64_t messages_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<SendEdge> make_socket_send_edge(UniqueFd socket, CpuView<const float> window,
                                                SocketPath path) {
  return std::make_unique<SocketSendEdge>(std::move(socket), window, path);
}

std::unique_ptr<RecvEdge> make_socket_recv_edge(UniqueFd socket, CpuView<float> window,
                                                SocketPath path) {
  return std::make_unique<SocketRecvEdge>(std::move(socket), window, path);
}

}  // namespace lockstep
