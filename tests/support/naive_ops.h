#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"
#include "kernels/gelu.h"

/// Every op as its formula reads, one loop a line, over whole vectors in memory order. In double it
/// is the reference; in float it is the plain implementation whose error sets the tolerance.
/// Instantiated for float and double. Nothing here is shared with the kernels.
namespace lockstep::naive {

template <class Real>
using Vec = std::vector<Real>;

template <class Real>
Vec<Real> gelu(Gelu form, const Vec<Real>& x);
template <class Real>
Vec<Real> gelu_derivative(Gelu form, const Vec<Real>& x);

template <class Real>
struct LayerNorm {
  Vec<Real> y, mean, rstd;
};
/// Rows of gamma.size() channels.
template <class Real>
LayerNorm<Real> layernorm(const Vec<Real>& x, const Vec<Real>& gamma, const Vec<Real>& beta);

template <class Real>
struct LayerNormGradient {
  Vec<Real> dx, dgamma, dbeta;
};
template <class Real>
LayerNormGradient<Real> layernorm_backward(const Vec<Real>& dy, const Vec<Real>& x,
                                           const Vec<Real>& gamma);

template <class Real>
struct Attention {
  Vec<Real> out, lse;
};
template <class Real>
Attention<Real> attention(const AttentionShape& shape, const Vec<Real>& qkv);
/// Probabilities are taken from lse, as the op's contract says.
template <class Real>
Vec<Real> attention_backward(const AttentionShape& shape, const Vec<Real>& dout,
                             const Vec<Real>& qkv);

template <class Real>
struct CrossEntropy {
  Vec<Real> losses, dlogits;
};
template <class Real>
CrossEntropy<Real> cross_entropy(int64_t vocabulary, Real gradient_scale, const Vec<Real>& logits,
                                 const Vec<int32_t>& targets);

template <class Real>
Vec<Real> embedding(int64_t time, const Vec<int32_t>& tokens, const Vec<Real>& wte,
                    const Vec<Real>& wpe);
template <class Real>
struct EmbeddingGradient {
  Vec<Real> dwte, dwpe;
};
/// `positions` is the number of rows of wpe; `head` has one row for each symbol.
template <class Real>
EmbeddingGradient<Real> embedding_backward(int64_t time, int64_t positions,
                                           const Vec<int32_t>& tokens, const Vec<Real>& head,
                                           const Vec<Real>& dx);

template <class Real>
Vec<Real> column_sum(int64_t columns, const Vec<Real>& in);

template <class Real>
struct AdamWState {
  Vec<Real> parameters, m, v;
};
struct AdamWHyperparameters {
  double beta1, beta2, epsilon, weight_decay, learning_rate, bias_correction1, bias_correction2,
      gradient_scale;
};
template <class Real>
AdamWState<Real> adamw(const AdamWState<Real>& before, const Vec<Real>& gradients,
                       const AdamWHyperparameters& with);

}  // namespace lockstep::naive
