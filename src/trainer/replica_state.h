#pragma once

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "trainer/replica.h"

namespace lockstep {

/// The arenas that a checkpoint holds, each with the prefix of its tensors' names.
template <class Device>
std::array<std::pair<std::string, View<Device, float>>, 3> state_arenas(Replica<Device>& replica) {
  return {{{"parameters/", replica.parameters()},
           {"adam_m/", replica.optimizer().m()},
           {"adam_v/", replica.optimizer().v()}}};
}

/// A replica's arenas in host memory: the arenas themselves where the host can reach them, else
/// copies.
template <class Device>
class HostState {
 public:
  explicit HostState(Replica<Device>& replica) : replica_(&replica) {
    for (auto& [prefix, view] : state_arenas(replica)) {
      if constexpr (Device::kHostAccessible) {
        arenas_.emplace_back(prefix, std::span<float>(view.data(), view.size()));
      } else {
        auto& copy = copies_.emplace_back(view.size());
        copy_to_host(replica.stream(), copy.data(), View<Device, const float>(view));
        arenas_.emplace_back(prefix, std::span<float>(copy));
      }
    }
    if constexpr (!Device::kHostAccessible) {
      replica.stream().synchronize();
    }
  }

  /// Every tensor by name; the memory is this object's or the replica's.
  std::vector<NamedTensor> tensors() const {
    std::vector<NamedTensor> tensors;
    for (const auto& [prefix, arena] : arenas_) {
      for (const ParamSpec& spec : replica_->model().table().specs()) {
        tensors.push_back({prefix + spec.name, spec.shape,
                           arena.subspan(static_cast<size_t>(spec.range.begin),
                                         static_cast<size_t>(spec.range.size()))});
      }
    }
    return tensors;
  }

  /// Fills every tensor from a checkpoint. Throws CorruptError when it does not hold exactly these.
  void read(const CheckpointReader& checkpoint) {
    std::map<std::string, std::span<float>> memory;
    for (auto& [prefix, arena] : arenas_) {
      for (const ParamSpec& spec : replica_->model().table().specs()) {
        memory[prefix + spec.name] = arena.subspan(static_cast<size_t>(spec.range.begin),
                                                   static_cast<size_t>(spec.range.size()));
      }
    }
    checkpoint.load("", memory);
  }

  /// Puts the arenas where the replica computes.
  void upload() {
    if constexpr (!Device::kHostAccessible) {
      size_t i = 0;
      for (auto& [prefix, view] : state_arenas(*replica_)) {
        copy_from_host(replica_->stream(), view, arenas_[i++].second.data());
      }
      replica_->stream().synchronize();
    }
  }

  const std::vector<std::pair<std::string, std::span<float>>>& arenas() const { return arenas_; }

 private:
  Replica<Device>* replica_;
  std::vector<std::vector<float>> copies_;
  std::vector<std::pair<std::string, std::span<float>>> arenas_;
};

/// Gives every rank rank 0's bits of `values`, through sums: each float travels as the two 16-bit
/// halves of its bits, which floats hold exactly, and the other ranks add zeros. Uses elements
/// [0, window size) of the window. Collective.
template <class Device>
void broadcast_from_root(typename Device::Stream& stream, Communicator<Device>& communicator,
                         bool is_root, std::span<float> values) {
  const View<Device, float> window = communicator.window();
  const auto most = static_cast<size_t>(window.size() / 2);
  for (size_t begin = 0; begin < values.size(); begin += most) {
    const std::span<float> part = values.subspan(begin, std::min(most, values.size() - begin));
    std::vector<float> halves(2 * part.size(), 0.0F);
    if (is_root) {
      for (size_t i = 0; i < part.size(); ++i) {
        uint32_t bits = 0;
        std::memcpy(&bits, &part[i], sizeof(bits));
        halves[2 * i] = static_cast<float>(bits >> 16);
        halves[2 * i + 1] = static_cast<float>(bits & 0xffffU);
      }
    }
    const Range range{0, static_cast<int64_t>(halves.size())};
    copy_from_host(stream, window.subview(range), halves.data());
    communicator.all_reduce(stream, range, 0);
    communicator.finish(stream);
    copy_to_host(stream, halves.data(), View<Device, const float>(window.subview(range)));
    stream.synchronize();
    communicator.take_times();  // throws when the sum failed
    for (size_t i = 0; i < part.size(); ++i) {
      const uint32_t bits =
          static_cast<uint32_t>(halves[2 * i]) << 16 | static_cast<uint32_t>(halves[2 * i + 1]);
      std::memcpy(&part[i], &bits, sizeof(bits));
    }
  }
}

}  // namespace lockstep
