#include "comm/shm_region.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "comm/process_fd.h"
#include "core/base/error.h"
#include "core/base/host_memory.h"

namespace lockstep {
namespace {

// The kernel compares 32 bits: the low half of the count.
static_assert(std::endian::native == std::endian::little);

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

long futex(std::atomic<uint64_t>* word, int operation, uint32_t value, const timespec* limit) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation, value, limit, nullptr,
                   0);
}

/// Backs the file with memory, piece by piece: asked for more than there is, the kernel does not
/// refuse but kills other processes of the host, so what is left is read before each piece, while
/// other ranks take theirs.
void reserve(int fd, size_t bytes) {
  constexpr size_t kPiece = size_t{64} << 20;
  const auto mib = [](size_t size) { return static_cast<double>(size) / (1 << 20); };
  for (size_t done = 0; done < bytes; done += kPiece) {
    const int64_t available = available_host_bytes();
    if (available >= 0 && bytes - done > static_cast<size_t>(available)) {
      throw OutOfMemoryError(
          "the gradient window needs {:.1f} MiB of shared memory and {:.1f} MiB are available: "
          "take a smaller model or fewer ranks on this host",
          mib(bytes), mib(static_cast<size_t>(available)));
    }
    const size_t piece = std::min(kPiece, bytes - done);
    if (::fallocate(fd, 0, static_cast<off_t>(done), static_cast<off_t>(piece)) != 0) {
      throw OutOfMemoryError("cannot get {:.1f} MiB of shared memory for the gradient window: {}",
                             mib(bytes), std::strerror(errno));
    }
  }
}

}  // namespace

// The store to the count and the load of `sleeping_`, and on the other side the store to
// `sleeping_` and the load of the count, are sequentially consistent: one of the two sees the
// other's store.
void ShmCounter::post(uint64_t value) noexcept {
  value_.store(value, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) {
    futex(&value_, FUTEX_WAKE, 1, nullptr);
  }
}

void ShmCounter::sleep_while(uint64_t seen, std::chrono::microseconds limit) noexcept {
  sleeping_.store(1, std::memory_order_seq_cst);
  if (value_.load(std::memory_order_seq_cst) == seen) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec timeout = {seconds.count(), (limit - seconds).count() * 1000};
    futex(&value_, FUTEX_WAIT, static_cast<uint32_t>(seen), &timeout);
  }
  sleeping_.store(0, std::memory_order_relaxed);
}

ShmRegion::ShmRegion(UniqueFd fd, size_t bytes) : fd_(std::move(fd)), bytes_(bytes) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(), 0);
  if (data == MAP_FAILED) {
    throw OutOfMemoryError("cannot map {:.1f} MiB of shared memory: {}",
                           static_cast<double>(bytes) / (1 << 20), std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(data);
}

ShmRegion ShmRegion::create(int64_t window_elements) {
  const size_t bytes = kControlBytes + static_cast<size_t>(window_elements) * sizeof(float);
  UniqueFd fd(::memfd_create("lockstep-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) {
    throw OutOfMemoryError("cannot create shared memory: {}", std::strerror(errno));
  }
  // Allocated now, so that too little memory is an error here and not a SIGBUS in a kernel later.
  reserve(fd.get(), bytes);
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    throw InternalError("cannot seal shared memory: {}", std::strerror(errno));
  }
  ShmRegion region(std::move(fd), bytes);
  auto* control = new (region.data_) ShmControl{};
  if (::getrandom(control->nonce.data(), sizeof(control->nonce), 0) != sizeof(control->nonce)) {
    throw InternalError("getrandom: {}", std::strerror(errno));
  }
  region.address_ = fmt::format("{} {} {} {} {}", ::getpid(), region.fd_.get(), bytes,
                                control->nonce[0], control->nonce[1]);
  return region;
}

std::optional<ShmRegion> ShmRegion::open(std::string_view address) {
  int pid = 0;
  int number = 0;
  size_t bytes = 0;
  std::array<uint64_t, 2> nonce{};
  if (std::sscanf(std::string(address).c_str(), "%d %d %zu %lu %lu", &pid, &number, &bytes,
                  &nonce[0], &nonce[1]) != 5 ||
      bytes < kControlBytes) {
    return std::nullopt;
  }
  UniqueFd fd = open_fd_of(pid, number, O_RDWR);
  struct stat status {};
  // Another file may have this number here; only a sealed one of the right size is mapped.
  if (!fd || ::fcntl(fd.get(), F_GET_SEALS) != kSeals || ::fstat(fd.get(), &status) != 0 ||
      static_cast<size_t>(status.st_size) != bytes) {
    return std::nullopt;
  }
  ShmRegion region(std::move(fd), bytes);
  region.fd_.reset();
  if (region.control().nonce != nonce) {
    return std::nullopt;
  }
  return region;
}

ShmRegion::~ShmRegion() {
  if (data_ != nullptr) {
    ::munmap(data_, bytes_);
  }
}

ShmRegion::ShmRegion(ShmRegion&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      address_(std::move(other.address_)) {}

ShmRegion& ShmRegion::operator=(ShmRegion&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(address_, other.address_);
  return *this;
}

}  // namespace lockstep
