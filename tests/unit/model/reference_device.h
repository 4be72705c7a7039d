#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/device/cpu_device.h"
#include "core/device/view.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/layernorm.h"
#include "kernels/reduce.h"
#include "kernels/weight_gradient.h"

namespace lockstep {

/// A device for tests whose ops are the formulas in double of support/naive_ops.h, results rounded
/// to float. The model's body runs on it unchanged, which checks the body apart from the kernels.
class ReferenceStream {
 public:
  void synchronize() {}

  /// Deletes x̂ · mean(g · x̂) from LayerNorm's backward: what the gradient check has to notice.
  bool drop_normalised_mean = false;
  /// Called behind every op.
  std::function<void()> after_op;
};

struct ReferenceDevice {
  using Stream = ReferenceStream;
  static constexpr bool kHostAccessible = true;
  static constexpr bool kRunsBesideHost = false;
  static constexpr std::string_view kName = "reference";

  static void* allocate(int64_t bytes) { return CpuDevice::allocate(bytes); }
  static void deallocate(void* data, int64_t bytes) noexcept { CpuDevice::deallocate(data, bytes); }
};

void set_zero(ReferenceStream& stream, View<ReferenceDevice, float> view);
void gemm(ReferenceStream& stream, const Gemm<ReferenceDevice>& args);
void weight_gradient(ReferenceStream& stream, const WeightGradient<ReferenceDevice>& args);
void layernorm_forward(ReferenceStream& stream, const LayerNormForward<ReferenceDevice>& args);
void layernorm_backward(ReferenceStream& stream, const LayerNormBackward<ReferenceDevice>& args);
void attention_forward(ReferenceStream& stream, const AttentionForward<ReferenceDevice>& args);
void attention_backward(ReferenceStream& stream, const AttentionBackward<ReferenceDevice>& args);
void cross_entropy(ReferenceStream& stream, const CrossEntropy<ReferenceDevice>& args);
void embedding_forward(ReferenceStream& stream, const EmbeddingForward<ReferenceDevice>& args);
void embedding_backward(ReferenceStream& stream, const EmbeddingBackward<ReferenceDevice>& args);
void column_sum(ReferenceStream& stream, const ColumnSum<ReferenceDevice>& args);
void sum(ReferenceStream& stream, const Sum<ReferenceDevice>& args);

}  // namespace lockstep
