#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <utility>

#include "core/base/file.h"

namespace lockstep {

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
