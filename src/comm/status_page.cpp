#include "comm/status_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "comm/process_fd.h"
#include "core/base/error.h"

namespace lockstep {

struct StatusPage::Words {
  std::atomic<int64_t> step{-1};
  std::atomic<uint32_t> phase{0};
  std::atomic<int32_t> bucket{-1};
  std::atomic<uint32_t> claimed{0};
  static_assert(std::atomic<int64_t>::is_always_lock_free &&
                    std::atomic<uint32_t>::is_always_lock_free,
                "two processes share the words");
};

namespace {

UniqueFd make_page(size_t bytes) {
  UniqueFd fd(::memfd_create("lockstep-status", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    throw IoError("cannot create shared memory: {}", std::strerror(errno));
  }
  return fd;
}

}  // namespace

StatusPage::StatusPage() : StatusPage(make_page(sizeof(Words))) {
  new (words_.get()) Words;
}

StatusPage::StatusPage(UniqueFd fd) : fd_(std::move(fd)) {
  void* address = ::mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (address == MAP_FAILED) {
    throw IoError("cannot map shared memory: {}", std::strerror(errno));
  }
  words_.reset(static_cast<Words*>(address));
}

void StatusPage::Unmap::operator()(Words* words) const noexcept {
  ::munmap(words, sizeof(Words));
}

void StatusPage::set_step(int64_t step) noexcept {
  words_->step.store(step, std::memory_order_relaxed);
}

void StatusPage::set_phase(Phase phase) noexcept {
  words_->phase.store(static_cast<uint32_t>(phase), std::memory_order_relaxed);
}

void StatusPage::set_bucket(int bucket) noexcept {
  words_->bucket.store(bucket, std::memory_order_relaxed);
}

RankStatus StatusPage::read() const noexcept {
  return {words_->step.load(std::memory_order_relaxed),
          static_cast<Phase>(words_->phase.load(std::memory_order_relaxed)),
          words_->bucket.load(std::memory_order_relaxed)};
}

bool StatusPage::claim_message() const noexcept {
  return words_->claimed.exchange(1) == 0;
}

std::unique_ptr<const StatusPage> StatusPage::of(const PeerInfo& peer, int fd) {
  UniqueFd page = open_fd_of(peer.pid, fd, O_RDWR);
  // The seal proves a page of this kind, and that reading it can never fail.
  const int seals = page ? ::fcntl(page.get(), F_GET_SEALS) : -1;
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      ::lseek(page.get(), 0, SEEK_END) < static_cast<off_t>(sizeof(Words))) {
    return nullptr;
  }
  return std::unique_ptr<const StatusPage>(new StatusPage(std::move(page)));
}

}  // namespace lockstep
