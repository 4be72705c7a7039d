#pragma once

#include <cstdint>
#include <vector>

#include "core/base/range.h"
#include "core/model/gpt_config.h"

namespace lockstep {

/// What forward keeps of one LayerNorm. The output of a layer's is not among it: all of them have
/// one place, which holds a norm's output until the next one's; backward computes it again.
struct NormActivations {
  Range mean;  ///< (B, T)
  Range rstd;  ///< (B, T)
  Range out;   ///< (B, T, C)
};

/// What forward keeps of one layer until its backward: the operands of every product but those that
/// come out of a LayerNorm, and what the gradients of the nonlinearities need.
struct LayerActivations {
  Range input;  ///< (B, T, C): the residual stream before the layer
  NormActivations ln_1;
  Range qkv;            ///< (B, T, 3C)
  Range lse;            ///< (B, H, T)
  Range attention_out;  ///< (B, T, C)
  Range middle;         ///< (B, T, C): the residual stream between attention and MLP
  NormActivations ln_2;
  Range gelu_derivative;  ///< (B, T, 4C): gelu' of GELU's argument; empty for inference
  Range gelu_out;         ///< (B, T, 4C)
};

/// The same behind the last layer.
struct HeadActivations {
  Range input;  ///< (B, T, C): the residual stream behind the last layer
  NormActivations ln_f;
  Range logits;  ///< (B, T, padded_vocab); their gradient after the loss
  Range losses;  ///< (B, T)
};

/// What backward needs for a moment only: shared by all layers.
struct BackwardScratch {
  Range residual_gradient;  ///< (B, T, C): carried from layer to layer
  Range branch_gradient;    ///< (B, T, C): of a branch's input, or of the attention's output
  Range wide_gradient;      ///< (B, T, 4C): of the MLP's hidden layer, or (B, T, 3C) of q, k, v
  Range attention_delta;    ///< (B, H, T)
  Range head_gradient;      ///< (padded_vocab, C): the head's share of the gradient of wte. It is
                            ///< computed after all layers and lies over the other gradients of
                            ///< branches.
};

/// Where every activation of a model lies in one workspace of floats. Pure arithmetic: linear in
/// the number of tokens, because attention keeps one number a row instead of its T x T matrix.
class ActivationPlan {
 public:
  /// For inference all layers share one layer's place and nothing is held for backward.
  enum class Purpose : uint8_t { kTraining, kInference };

  /// Of one plan. Times the floats of one token, below 2^33 for every valid GptConfig, their bytes
  /// fit 64 bits.
  static constexpr int64_t kMostTokens = int64_t{1} << 27;

  /// Throws UsageError for more tokens than can be counted in bytes.
  ActivationPlan(const GptConfig& config, int64_t batch, int64_t time, Purpose purpose);

  const LayerActivations& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }
  const HeadActivations& head() const { return head_; }
  const BackwardScratch& scratch() const { return scratch_; }

  int64_t size() const { return size_; }                ///< elements of the workspace
  int64_t layer_bytes() const { return layer_bytes_; }  ///< of all layers together
  int64_t head_bytes() const { return head_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  std::vector<LayerActivations> layers_;
  HeadActivations head_;
  BackwardScratch scratch_;
  int64_t size_ = 0;
  int64_t layer_bytes_ = 0;
  int64_t head_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace lockstep
