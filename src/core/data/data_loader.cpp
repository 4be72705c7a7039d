#include "core/data/data_loader.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base/error.h"

namespace lockstep {
namespace {

// Two batches ahead, and one in the caller's hands.
constexpr int64_t kSlots = 3;

}  // namespace

struct DataLoader::Impl {
  const TokenShard& shard;
  const SampleOrder order;
  const LoaderShape shape;
  const int64_t first_step;
  std::array<HostBatch, kSlots> slots;
  std::vector<int32_t> window;  // the thread's: tokens and targets of one sample

  std::mutex mutex;
  std::condition_variable changed;
  // Of this rank's micro-batches, counted from first_step; guarded by mutex.
  int64_t prepared = 0;
  int64_t taken = 0;
  bool stopping = false;
  std::exception_ptr failure;

  std::thread thread;  // last: it uses all of the above

  Impl(const TokenShard& shard_in, uint64_t seed, const LoaderShape& shape_in,
       int64_t first_step_in);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run() noexcept;
  void fill(int64_t micro_batch, HostBatch* batch);
};

DataLoader::Impl::Impl(const TokenShard& shard_in, uint64_t seed, const LoaderShape& shape_in,
                       int64_t first_step_in)
    : shard(shard_in),
      order(seed, shard_in.size(), shape_in.block_size),
      shape(shape_in),
      first_step(first_step_in),
      window(static_cast<size_t>(shape_in.block_size) + 1) {
  LOCKSTEP_CHECK(shape.rank >= 0 && shape.rank < shape.world_size && shape.batch_size > 0 &&
                     shape.accumulation_steps > 0 && first_step >= 0,
                 "rank {} of {}, batch {}, accumulation {}, step {}", shape.rank, shape.world_size,
                 shape.batch_size, shape.accumulation_steps, first_step);
  const auto size = static_cast<size_t>(shape.batch_size * shape.block_size);
  for (HostBatch& batch : slots) {
    batch.tokens.resize(size);
    batch.targets.resize(size);
  }
  thread = std::thread([this] { run(); });
}

DataLoader::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

void DataLoader::Impl::run() noexcept {
  for (int64_t micro_batch = 0;; ++micro_batch) {
    {
      std::unique_lock lock(mutex);
      // The slot is free when the caller has moved past the batch that it held.
      changed.wait(lock, [&] { return stopping || micro_batch < taken + kSlots - 1; });
      if (stopping) {
        return;
      }
    }
    std::exception_ptr error;
    try {
      fill(micro_batch, &slots[static_cast<size_t>(micro_batch % kSlots)]);
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex);
      failure = error;
      prepared = error ? prepared : micro_batch + 1;
    }
    changed.notify_all();
    if (error) {
      return;
    }
  }
}

void DataLoader::Impl::fill(int64_t micro_batch, HostBatch* batch) {
  const int64_t step = first_step + micro_batch / shape.accumulation_steps;
  const int64_t micro_step = micro_batch % shape.accumulation_steps;
  const int64_t place = (micro_step * shape.world_size + shape.rank) * shape.batch_size;
  const int64_t time = shape.block_size;
  for (int64_t b = 0; b < shape.batch_size; ++b) {
    const int64_t begin = order.offset(step * shape.global_batch() + place + b);
    shard.read(begin, time + 1, shape.vocabulary, window.data());
    std::copy_n(window.begin(), time, batch->tokens.begin() + b * time);
    std::copy_n(window.begin() + 1, time, batch->targets.begin() + b * time);
  }
}

DataLoader::DataLoader(const TokenShard& shard, uint64_t seed, const LoaderShape& shape,
                       int64_t first_step)
    : impl_(std::make_unique<Impl>(shard, seed, shape, first_step)) {}

DataLoader::~DataLoader() = default;

const HostBatch& DataLoader::next() {
  Impl& impl = *impl_;
  int64_t micro_batch = 0;
  {
    std::unique_lock lock(impl.mutex);
    impl.changed.wait(lock, [&] { return impl.prepared > impl.taken || impl.failure; });
    if (impl.prepared == impl.taken) {
      std::rethrow_exception(impl.failure);
    }
    micro_batch = impl.taken++;
  }
  impl.changed.notify_all();
  return impl.slots[static_cast<size_t>(micro_batch % kSlots)];
}

}  // namespace lockstep
