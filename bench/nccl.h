#pragma once

#include <string>

#include "comm/bootstrap.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// NVIDIA's collectives, loaded when the program runs, as a baseline: one rank of all of
/// `bootstrap`. NVLS, which adds in the switch, is off: what is compared is what travels over the
/// links.
class Nccl {
 public:
  /// On the GPU that is current. Collective. Throws UnsupportedError, on all ranks, when a rank has
  /// no NCCL.
  explicit Nccl(Bootstrap& bootstrap);
  /// Waits for nothing: the streams it was used on are idle.
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  Nccl(Nccl&&) = delete;
  Nccl& operator=(Nccl&&) = delete;

  std::string version() const;
  /// In place.
  void all_reduce(CudaStream& stream, CudaView<float> values) const;

 private:
  void* symbol(const char* name) const;
  template <class... Args>
  void call(const char* name, Args... args) const;

  void* library_ = nullptr;
  void* communicator_ = nullptr;
};

}  // namespace lockstep
