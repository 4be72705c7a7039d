#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/device/cuda_device.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/layernorm.h"
#include "kernels/reduce.h"
#include "kernels/segment_norms.h"
#include "kernels/weight_gradient.h"

namespace lockstep {

/// What an op costs at least, whatever runs it.
struct OpCost {
  double flops = 0;
  double bytes = 0;  ///< read and written once
};

/// A stream of a GPU that marks the time on both sides of each op. The ops may be captured into a
/// graph: then launches of it are timed.
class ProfiledStream {
 public:
  explicit ProfiledStream(CudaStream& stream) : stream_(&stream) {}

  /// Runs `op` on the stream under a name.
  void timed(std::string name, OpCost cost, const std::function<void(CudaStream&)>& op);
  void synchronize() { stream_->synchronize(); }
  CudaStream& cuda() { return *stream_; }

  /// The ops of one name, all together.
  struct Total {
    int64_t calls = 0;
    double seconds = 0;
    OpCost cost;
  };
  /// Of the last run of everything that was enqueued. Waits for it.
  std::map<std::string, Total> totals();

 private:
  struct Sample {
    std::string name;
    OpCost cost;
    CudaEvent start;
    CudaEvent stop;
  };

  CudaStream* stream_;
  std::deque<Sample> samples_;
};

/// The GPU as a device whose ops are those of CudaDevice, each timed: the bodies of model and
/// optimizer run on it unchanged.
struct ProfiledCuda {
  using Stream = ProfiledStream;
  static constexpr bool kHostAccessible = false;
  static constexpr bool kRunsBesideHost = false;  ///< one op at a time: each is timed alone
  static constexpr std::string_view kName = "cuda";

  static void* allocate(int64_t bytes) { return CudaDevice::allocate(bytes); }
  static void deallocate(void* data, int64_t bytes) noexcept {
    CudaDevice::deallocate(data, bytes);
  }
};

void gemm(ProfiledStream& stream, const Gemm<ProfiledCuda>& args);
void weight_gradient(ProfiledStream& stream, const WeightGradient<ProfiledCuda>& args);
void attention_forward(ProfiledStream& stream, const AttentionForward<ProfiledCuda>& args);
void attention_backward(ProfiledStream& stream, const AttentionBackward<ProfiledCuda>& args);
void layernorm_forward(ProfiledStream& stream, const LayerNormForward<ProfiledCuda>& args);
void layernorm_backward(ProfiledStream& stream, const LayerNormBackward<ProfiledCuda>& args);
void embedding_forward(ProfiledStream& stream, const EmbeddingForward<ProfiledCuda>& args);
void embedding_backward(ProfiledStream& stream, const EmbeddingBackward<ProfiledCuda>& args);
void cross_entropy(ProfiledStream& stream, const CrossEntropy<ProfiledCuda>& args);
void column_sum(ProfiledStream& stream, const ColumnSum<ProfiledCuda>& args);
void squared_norm(ProfiledStream& stream, const SquaredNorm<ProfiledCuda>& args);
void segment_norms(ProfiledStream& stream, const SegmentNorms<ProfiledCuda>& args);
void norm_of_segments(ProfiledStream& stream, const NormOfSegments<ProfiledCuda>& args);
void sum(ProfiledStream& stream, const Sum<ProfiledCuda>& args);
void clip_scale(ProfiledStream& stream, const ClipScale<ProfiledCuda>& args);
void adamw(ProfiledStream& stream, const AdamW<ProfiledCuda>& args);

void set_zero(ProfiledStream& stream, View<ProfiledCuda, float> view);

template <class T>
void copy_from_host(ProfiledStream& stream, View<ProfiledCuda, T> to, const T* from) {
  copy_from_host(stream.cuda(), CudaView<T>(to.data(), to.size()), from);
}
template <class T>
void copy_to_host(ProfiledStream& stream, T* to, View<ProfiledCuda, const T> from) {
  copy_to_host(stream.cuda(), to, CudaView<const T>(from.data(), from.size()));
}

}  // namespace lockstep
