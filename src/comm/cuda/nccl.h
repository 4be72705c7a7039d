#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "comm/bootstrap.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// NVIDIA's collectives, loaded when the program runs: one rank of all of `bootstrap`. NCCL reads
/// the environment when it is loaded first (NCCL_DEBUG, NCCL_SOCKET_IFNAME, ...).
class Nccl {
 public:
  /// On the GPU that is current. Collective. Throws on all ranks UnsupportedError when a rank has
  /// no NCCL, or one from before 2.9, and UsageError when two share a GPU, with `instead`, what to
  /// do without it. A rank on which NCCL fails to start throws UnsupportedError alone: the others
  /// wait for it until the control plane ends them.
  Nccl(Bootstrap& bootstrap, std::string_view instead);
  /// When the streams that it was used on are idle, and the graphs that captured its sums are gone.
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  Nccl(Nccl&&) = delete;
  Nccl& operator=(Nccl&&) = delete;

  std::string version() const;

  /// In place. Ranks that sum arrays of different sizes get wrong sums or wait without end. After
  /// abort() nothing is enqueued.
  void all_reduce(CudaStream& stream, CudaView<float> values);

  /// What NCCL found wrong beside its calls, as with a network; empty: nothing. Cheap. On the
  /// thread that calls abort().
  std::string problem() const;
  /// Ends all sums at once, those in graphs that are still to be launched too: they leave anything
  /// behind. Returns when the graphs that captured sums are gone. From any one thread, also while
  /// others enqueue sums.
  void abort() noexcept;

 private:
  struct Library;

  std::unique_ptr<const Library> library_;
  int device_ = 0;
  std::mutex mutex_;  ///< held while a sum is enqueued, and while abort() takes the communicator
  void* communicator_ = nullptr;  ///< null once aborted
};

}  // namespace lockstep
