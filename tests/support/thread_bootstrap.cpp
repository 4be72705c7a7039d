#include "support/thread_bootstrap.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace lockstep {
namespace {

/// The meeting point of one group: a gather is complete when every rank has written its part, and a
/// new one starts when every rank has read the whole.
class Group {
 public:
  explicit Group(int world_size) : parts_(static_cast<size_t>(world_size)) {}

  int world_size() const { return static_cast<int>(parts_.size()); }

  std::vector<std::string> all_gather(int rank, std::string_view bytes) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return !complete_; });
    parts_[static_cast<size_t>(rank)] = bytes;
    if (++present_ == world_size()) {
      complete_ = true;
      changed_.notify_all();
    }
    wait(lock, [&] { return complete_; });
    std::vector<std::string> all = parts_;
    if (--present_ == 0) {
      complete_ = false;
      changed_.notify_all();
    }
    return all;
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) {
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

  std::exception_ptr error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition) {
    changed_.wait(lock, [&] { return condition() || error_; });
    if (!condition()) {
      throw PeerLostError("another rank of the test failed");
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> parts_;
  int present_ = 0;
  bool complete_ = false;
  std::exception_ptr error_;
};

class ThreadBootstrap final : public Bootstrap {
 public:
  ThreadBootstrap(Group& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int world_size() const override { return group_.world_size(); }
  std::vector<std::string> all_gather(std::string_view bytes) override {
    return group_.all_gather(rank_, bytes);
  }
  void barrier() override { group_.all_gather(rank_, {}); }

 private:
  Group& group_;
  int rank_;
};

}  // namespace

void run_ranks(int world_size, const std::function<void(Bootstrap&)>& body) {
  Group group(world_size);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&group, &body, rank] {
      try {
        ThreadBootstrap bootstrap(group, rank);
        body(bootstrap);
      } catch (...) {
        group.fail(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (group.error()) {
    std::rethrow_exception(group.error());
  }
}

}  // namespace lockstep
