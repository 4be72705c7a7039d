// Loaded into one rank before the system's own library (LD_PRELOAD): the first element of every
// whole segment that it receives arrives with one bit turned over.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace {

constexpr size_t kSegmentBytes = 65536;

}  // namespace

extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t received = ::syscall(SYS_recvmsg, fd, message, flags);
  size_t before = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    const iovec& piece = message->msg_iov[i];
    if (piece.iov_len == kSegmentBytes && received >= static_cast<ssize_t>(before + 4)) {
      static_cast<unsigned char*>(piece.iov_base)[2] ^= 0x40U;
    }
    before += piece.iov_len;
  }
  return received;
}
