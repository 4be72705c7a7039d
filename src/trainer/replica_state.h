#pragma once

#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "trainer/replica.h"

namespace lockstep {

/// What a checkpoint holds, each with the prefix of its tensors' names: arenas, or of the moments
/// this rank's shard.
template <class Device>
std::array<std::pair<std::string, View<Device, float>>, 3> state_arenas(Replica<Device>& replica) {
  return {{{"parameters/", replica.parameters()},
           {"adam_m/", replica.optimizer().m()},
           {"adam_v/", replica.optimizer().v()}}};
}

/// Puts the moments of every rank's shard in place of the gradients, at all ranks. Collective.
template <class Device>
void gather_moments(Replica<Device>& replica, Communicator<Device>& communicator,
                    View<Device, float> moments) {
  const View<Device, float> arena = replica.gradients();
  replica.optimizer().shard().for_each_segment(arena.size(), [&](Range at, Range segment) {
    copy(replica.stream(), arena.subview(at), View<Device, const float>(moments.subview(segment)));
  });
  communicator.all_gather(replica.stream(), {0, arena.size()}, 0, SumLoad::kAlone);
  communicator.finish(replica.stream());
}

/// Behind gather_moments: gradients are zeros again. Waits; throws when a gather failed.
template <class Device>
void end_gathers(Replica<Device>& replica, Communicator<Device>& communicator) {
  set_zero(replica.stream(), replica.gradients());
  replica.stream().synchronize();
  communicator.take_times();
}

/// What the other ranks do while one makes a HostState from shards.
template <class Device>
void give_moments(Replica<Device>& replica, Communicator<Device>& communicator) {
  gather_moments(replica, communicator, replica.optimizer().m());
  gather_moments(replica, communicator, replica.optimizer().v());
  end_gathers(replica, communicator);
}

/// A replica's arenas in host memory: the arenas themselves where the host can reach them whole,
/// else copies.
template <class Device>
class HostState {
 public:
  /// Between steps. With shards collective, and gradients are zeros afterwards.
  HostState(Replica<Device>& replica, Communicator<Device>& communicator) : replica_(&replica) {
    for (auto& [prefix, view] : state_arenas(replica)) {
      const bool whole = view.size() == replica.gradients().size();
      if (Device::kHostAccessible && whole) {
        arenas_.emplace_back(prefix, std::span<float>(view.data(), view.size()));
        continue;
      }
      if (!whole) {
        gather_moments(replica, communicator, view);
      }
      auto& copy = copies_.emplace_back(replica.gradients().size());
      copy_to_host(replica.stream(), copy.data(),
                   View<Device, const float>(whole ? view : replica.gradients()));
      arenas_.emplace_back(prefix, std::span<float>(copy));
    }
    if (replica.optimizer().shard().ranks > 1) {
      end_gathers(replica, communicator);
    } else {
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

  /// Puts the arenas where the replica computes, of the moments its shard.
  void upload() {
    size_t i = 0;
    for (auto& [prefix, view] : state_arenas(*replica_)) {
      const std::span<const float> arena = arenas_[i++].second;
      const bool whole = view.size() == std::ssize(arena);
      const ArenaShard shard = whole ? ArenaShard{} : replica_->optimizer().shard();
      if (arena.data() == view.data()) {
        continue;
      }
      shard.for_each_segment(std::ssize(arena), [&, to = view](Range at, Range segment) {
        copy_from_host(replica_->stream(), to.subview(segment), &arena[at.begin]);
      });
    }
    replica_->stream().synchronize();
  }

  const std::vector<std::pair<std::string, std::span<float>>>& arenas() const { return arenas_; }

 private:
  Replica<Device>* replica_;
  std::vector<std::vector<float>> copies_;
  std::vector<std::pair<std::string, std::span<float>>> arenas_;
};

/// Gives every rank rank 0's bits of `values`, through sums: each float travels as the two 16-bit
/// halves of its bits, which floats hold exactly, and the other ranks add zeros. Uses the window's
/// first `elements`. Collective.
template <class Device>
void broadcast_from_root(typename Device::Stream& stream, Communicator<Device>& communicator,
                         int64_t elements, bool is_root, std::span<float> values) {
  const View<Device, float> window = communicator.window().subview({0, elements});
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
