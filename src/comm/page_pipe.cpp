#include "comm/page_pipe.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace lockstep {
namespace {

// Holds a segment of the window and more: one page takes one slot, and the default is 16 of them.
constexpr int kPipeBytes = 1 << 20;

/// Keeps the signal of a write to a closed connection from this thread; splice has no flag for it.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~WithoutSigpipe() {
    // Whatever splice returned: when the connection closes in the middle of a call it reports what
    // it had sent before, and the signal is there nevertheless.
    if (::sigismember(&before_, SIGPIPE) == 0) {
      const timespec now = {0, 0};
      ::sigtimedwait(&sigpipe_, nullptr, &now);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  WithoutSigpipe(WithoutSigpipe&&) = delete;
  WithoutSigpipe& operator=(WithoutSigpipe&&) = delete;

 private:
  sigset_t sigpipe_{};
  sigset_t before_{};
};

template <class Call>
ssize_t uninterrupted(Call call) {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

bool PagePipe::open() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return false;
  }
  out_ = UniqueFd(ends[0]);
  in_ = UniqueFd(ends[1]);
  // A smaller pipe only takes more calls.
  ::fcntl(in_.get(), F_SETPIPE_SZ, kPipeBytes);
  return true;
}

bool PagePipe::fill(std::span<const std::byte> data) {
  // vmsplice does not write to what its non-const pointer names.
  const iovec piece = {const_cast<std::byte*>(data.data()), data.size()};
  const ssize_t held =
      uninterrupted([&] { return ::vmsplice(in_.get(), &piece, 1, SPLICE_F_NONBLOCK); });
  held_ = held > 0 ? static_cast<size_t>(held) : 0;
  return held > 0;
}

std::optional<size_t> PagePipe::send(int socket, std::span<const std::byte> data, bool more) {
  if ((!in_ && !open()) || (held_ == 0 && !fill(data))) {
    return std::nullopt;
  }
  const unsigned flags = SPLICE_F_NONBLOCK | (more || held_ < data.size() ? SPLICE_F_MORE : 0U);
  const WithoutSigpipe guard;
  const ssize_t sent =
      uninterrupted([&] { return ::splice(out_.get(), nullptr, socket, nullptr, held_, flags); });
  if (sent < 0 && errno == EAGAIN) {
    return 0;
  }
  if (sent <= 0) {
    return std::nullopt;
  }
  held_ -= static_cast<size_t>(sent);
  return static_cast<size_t>(sent);
}

}  // namespace lockstep
