#include "core/model/activation_plan.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/model/alignment.h"

namespace lockstep {
namespace {

constexpr int64_t kElementBytes = sizeof(float);

/// Hands out ranges one after the other.
class Cursor {
 public:
  explicit Cursor(int64_t position = 0) : position_(position) {}
  int64_t position() const { return position_; }
  Range take(int64_t elements) {
    const Range range = {position_, position_ + elements};
    position_ = align_tensor(range.end);
    return range;
  }

 private:
  int64_t position_;
};

// Braced initialisers are evaluated in order: activations lie in the order of their computation.

NormActivations take_norm(Cursor& cursor, int64_t tokens, Range out) {
  return {.mean = cursor.take(tokens), .rstd = cursor.take(tokens), .out = out};
}

LayerActivations take_layer(Cursor& cursor, const GptConfig& config, int64_t tokens, Range norm_out,
                            bool training) {
  const int64_t c = config.n_embd;
  return {.input = cursor.take(tokens * c),
          .ln_1 = take_norm(cursor, tokens, norm_out),
          .qkv = cursor.take(tokens * 3 * c),
          .lse = cursor.take(tokens * config.n_head),
          .attention_out = cursor.take(tokens * c),
          .middle = cursor.take(tokens * c),
          .ln_2 = take_norm(cursor, tokens, norm_out),
          .gelu_derivative = cursor.take(training ? tokens * 4 * c : 0),
          .gelu_out = cursor.take(tokens * 4 * c)};
}

}  // namespace

ActivationPlan::ActivationPlan(const GptConfig& config, int64_t batch, int64_t time,
                               Purpose purpose) {
  if (batch > kMostTokens / time) {
    throw UsageError(
        "--batch-size {} x --block-size {}: a rank works on at most {} tokens at a time; give "
        "fewer sequences and more --gradient-accumulation-steps",
        batch, time, kMostTokens);
  }
  const int64_t tokens = batch * time;
  const int64_t c = config.n_embd;
  Cursor cursor;
  const bool training = purpose == Purpose::kTraining;
  const Range norm_out = cursor.take(tokens * c);
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    const bool shared = !training && layer > 0;
    layers_.push_back(shared ? layers_.front()
                             : take_layer(cursor, config, tokens, norm_out, training));
  }
  layer_bytes_ = cursor.position() * kElementBytes;

  head_ = {.input = cursor.take(tokens * c),
           .ln_f = take_norm(cursor, tokens, cursor.take(tokens * c)),
           .logits = cursor.take(tokens * config.padded_vocab()),
           .losses = cursor.take(tokens)};
  head_bytes_ = cursor.position() * kElementBytes - layer_bytes_;

  size_ = cursor.position();
  if (!training) {
    return;
  }
  scratch_.residual_gradient = cursor.take(tokens * c);
  Cursor head_share(cursor.position());
  scratch_.branch_gradient = cursor.take(tokens * c);
  scratch_.wide_gradient = cursor.take(tokens * 4 * c);
  scratch_.attention_delta = cursor.take(tokens * config.n_head);
  scratch_.head_gradient = head_share.take(config.padded_vocab() * c);
  size_ = std::max(cursor.position(), head_share.position());
  scratch_bytes_ = size_ * kElementBytes - layer_bytes_ - head_bytes_;
}

}  // namespace lockstep
