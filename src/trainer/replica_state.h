#pragma once

#include <algorithm>
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

/// A third of what a checkpoint holds: an arena, or this rank's shard of one.
template <class Device>
struct StateArena {
  std::string prefix;  ///< of its tensors' names
  View<Device, float> view;
  ArenaShard shard = {};

  bool is_whole() const { return shard.ranks == 1; }
};

template <class Device>
std::array<StateArena<Device>, 3> state_arenas(Replica<Device>& replica) {
  Optimizer<Device>& optimizer = replica.optimizer();
  return {{{"parameters/", replica.parameters()},
           {"adam_m/", optimizer.m(), optimizer.shard()},
           {"adam_v/", optimizer.v(), optimizer.shard()}}};
}

/// Calls `body` with the name of each tensor of an arena in host memory, its spec and its elements.
template <class Device, class Body>
void for_each_tensor(Replica<Device>& replica, const std::string& prefix, std::span<float> arena,
                     const Body& body) {
  for (const ParamSpec& spec : replica.model().table().specs()) {
    body(prefix + spec.name, spec,
         arena.subspan(static_cast<size_t>(spec.range.begin),
                       static_cast<size_t>(spec.range.size())));
  }
}

/// Puts the moments of every rank's shard in place of the gradients, at all ranks. Between steps:
/// the next one makes all gradients anew, and where there are none moments are zeros too.
/// Collective.
template <class Device>
void gather_moments(Replica<Device>& replica, Communicator<Device>& communicator,
                    View<Device, float> moments) {
  const View<Device, float> arena = replica.gradients();
  replica.optimizer().shard().for_each_segment(arena.size(), [&](Range at, Range segment) {
    copy(replica.stream(), arena.subview(at), View<Device, const float>(moments.subview(segment)));
  });
  communicator.all_gather(replica.stream(), {0, arena.size()}, 0, SumLoad::kAlone);
  communicator.finish(replica.stream());
  replica.stream().synchronize();
  communicator.take_times();  // throws when the gather failed
}

/// What the other ranks do while rank 0 makes a HostState from shards.
template <class Device>
void give_moments(Replica<Device>& replica, Communicator<Device>& communicator) {
  gather_moments(replica, communicator, replica.optimizer().m());
  gather_moments(replica, communicator, replica.optimizer().v());
}

/// A replica's arenas in host memory, to be saved: the arenas themselves where the host can reach
/// them whole, else copies.
template <class Device>
class HostState {
 public:
  /// Between steps; with shards collective, with give_moments of the other ranks. Valid until the
  /// next step.
  HostState(Replica<Device>& replica, Communicator<Device>& communicator) : replica_(&replica) {
    const auto arenas = state_arenas(replica);
    for (const StateArena<Device>& arena : arenas) {
      View<Device, float> whole = arena.view;
      if (!arena.is_whole()) {
        gather_moments(replica, communicator, arena.view);
        whole = replica.gradients();
      }
      // What was gathered first makes room for what comes next.
      const bool stays = arena.is_whole() || &arena == &arenas.back();
      if (Device::kHostAccessible && stays) {
        arenas_.emplace_back(arena.prefix, std::span<float>(whole.data(), whole.size()));
        continue;
      }
      std::vector<float>& copy = copies_.emplace_back(whole.size());
      copy_to_host(replica.stream(), copy.data(), View<Device, const float>(whole));
      replica.stream().synchronize();
      arenas_.emplace_back(arena.prefix, std::span<float>(copy));
    }
  }

  /// Every tensor by name; the memory is this object's or the replica's.
  std::vector<NamedTensor> tensors() const {
    std::vector<NamedTensor> tensors;
    for (const auto& [prefix, arena] : arenas_) {
      for_each_tensor(*replica_, prefix, arena,
                      [&](const std::string& name, const ParamSpec& spec, std::span<float> values) {
                        tensors.push_back({name, spec.shape, values});
                      });
    }
    return tensors;
  }

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
  constexpr int64_t kMostValues = 4 << 20;  // so that what they travel in stays small
  const auto most = static_cast<size_t>(std::min(kMostValues, window.size() / 2));
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

/// Fills the replicas of all ranks, of the moments their shards, from `checkpoint`, which rank 0
/// alone has. One arena after another, through memory for one where the host cannot reach them
/// whole. Uses the window's first `elements`. Collective. Throws CorruptError when the checkpoint
/// does not hold exactly the replica's tensors.
template <class Device>
void load_state(Replica<Device>& replica, Communicator<Device>& communicator, int64_t elements,
                const CheckpointReader* checkpoint) {
  const int64_t size = replica.gradients().size();
  std::vector<float> room;
  std::map<std::string, int64_t> expected;
  for (const StateArena<Device>& arena : state_arenas(replica)) {
    for (const ParamSpec& spec : replica.model().table().specs()) {
      expected[arena.prefix + spec.name] = spec.range.size();
    }
  }
  if (checkpoint != nullptr) {
    checkpoint->check_tensors("", expected);
  }
  for (const StateArena<Device>& arena : state_arenas(replica)) {
    const bool in_place = Device::kHostAccessible && arena.is_whole();
    room.resize(static_cast<size_t>(in_place ? 0 : size));
    const std::span<float> values(in_place ? arena.view.data() : room.data(), size);
    if (checkpoint != nullptr) {
      std::map<std::string, std::span<float>> tensors;
      for_each_tensor(replica, arena.prefix, values,
                      [&](const std::string& name, const ParamSpec&, std::span<float> tensor) {
                        tensors[name] = tensor;
                      });
      checkpoint->load(arena.prefix, tensors);
    }
    broadcast_from_root(replica.stream(), communicator, elements, checkpoint != nullptr, values);
    if (!in_place) {
      arena.shard.for_each_segment(size, [&](Range at, Range segment) {
        copy_from_host(replica.stream(), arena.view.subview(segment), &values[at.begin]);
      });
      replica.stream().synchronize();
    }
  }
}

}  // namespace lockstep
