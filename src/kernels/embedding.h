#pragma once

#include <cstdint>

#include "core/device/cpu_device.h"

namespace lockstep {

/// x[b, t] = wte[tokens[b, t]] + wpe[t].
template <class Device>
struct EmbeddingForward {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t channels = 0;
  View<Device, float> x;               ///< (B, T, C)
  View<Device, const int32_t> tokens;  ///< (B, T), each in [0, vocabulary): the loader has checked
  View<Device, const float> wte;       ///< (vocabulary, C)
  View<Device, const float> wpe;       ///< (block size, C), T <= block size
};
void embedding_forward(CpuStream& stream, const EmbeddingForward<CpuDevice>& args);

/// dwte[v] (+)= head[v] + sum over positions with token v of dx, in position order;
/// dwpe[t] (+)= sum over b of dx[b, t], rows t >= T (+)= 0.
/// `head` is the tied output projection's share of the gradient of wte; the sum of both is finished
/// before it is added.
template <class Device>
struct EmbeddingBackward {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t channels = 0;
  int64_t vocabulary = 0;              ///< rows of wte, padding included
  View<Device, float> dwte;            ///< (vocabulary, C)
  View<Device, float> dwpe;            ///< (block size, C)
  View<Device, const float> head;      ///< (vocabulary, C)
  View<Device, const float> dx;        ///< (B, T, C)
  View<Device, const int32_t> tokens;  ///< (B, T)
  bool accumulate = false;
};
void embedding_backward(CpuStream& stream, const EmbeddingBackward<CpuDevice>& args);

}  // namespace lockstep
