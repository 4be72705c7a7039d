#include "support/naive_ops.h"

#include <algorithm>
#include <cmath>

#include "support/gelu_reference.h"

namespace lockstep::naive {
namespace {

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

// Offsets of one head's q row in the packed projection; k and v follow C and 2C later.
struct HeadIndex {
  int64_t batch, time, heads, head_dim;
  int64_t channels() const { return heads * head_dim; }
  size_t q(int64_t b, int64_t h, int64_t t, int64_t d) const {
    return at((b * time + t) * 3 * channels() + h * head_dim + d);
  }
  size_t k(int64_t b, int64_t h, int64_t t, int64_t d) const {
    return q(b, h, t, d) + at(channels());
  }
  size_t v(int64_t b, int64_t h, int64_t t, int64_t d) const {
    return q(b, h, t, d) + at(2 * channels());
  }
  size_t out(int64_t b, int64_t h, int64_t t, int64_t d) const {
    return at((b * time + t) * channels() + h * head_dim + d);
  }
};

// Probabilities of row t of one head over keys 0 … t, and the row's lse.
template <class Real>
Vec<Real> softmax_row(const HeadIndex& index, const Vec<Real>& qkv, int64_t b, int64_t h, int64_t t,
                      Real* lse) {
  const Real scale = Real{1} / std::sqrt(static_cast<Real>(index.head_dim));
  Vec<Real> p(at(t + 1));
  for (int64_t j = 0; j <= t; ++j) {
    Real dot = 0;
    for (int64_t d = 0; d < index.head_dim; ++d) {
      dot += qkv[index.q(b, h, t, d)] * qkv[index.k(b, h, j, d)];
    }
    p[at(j)] = scale * dot;
  }
  const Real max = *std::max_element(p.begin(), p.end());
  Real sum = 0;
  for (Real& value : p) {
    value = std::exp(value - max);
    sum += value;
  }
  for (Real& value : p) {
    value /= sum;
  }
  *lse = max + std::log(sum);
  return p;
}

}  // namespace

template <class Real>
Vec<Real> gelu(Gelu form, const Vec<Real>& x) {
  Vec<Real> y(x.size());
  std::transform(x.begin(), x.end(), y.begin(), [form](Real value) { return gelu(form, value); });
  return y;
}

template <class Real>
Vec<Real> gelu_derivative(Gelu form, const Vec<Real>& x) {
  Vec<Real> slope(x.size());
  std::transform(x.begin(), x.end(), slope.begin(),
                 [form](Real value) { return gelu_derivative(form, value); });
  return slope;
}

template <class Real>
LayerNorm<Real> layernorm(const Vec<Real>& x, const Vec<Real>& gamma, const Vec<Real>& beta) {
  const size_t channels = gamma.size();
  LayerNorm<Real> result;
  result.y.resize(x.size());
  for (size_t row = 0; row < x.size(); row += channels) {
    Real mean = 0;
    for (size_t c = 0; c < channels; ++c) {
      mean += x[row + c];
    }
    mean /= static_cast<Real>(channels);
    Real variance = 0;
    for (size_t c = 0; c < channels; ++c) {
      variance += (x[row + c] - mean) * (x[row + c] - mean);
    }
    variance /= static_cast<Real>(channels);
    const Real rstd = Real{1} / std::sqrt(variance + Real(1e-5));
    for (size_t c = 0; c < channels; ++c) {
      result.y[row + c] = (x[row + c] - mean) * rstd * gamma[c] + beta[c];
    }
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
  }
  return result;
}

template <class Real>
LayerNormGradient<Real> layernorm_backward(const Vec<Real>& dy, const Vec<Real>& x,
                                           const Vec<Real>& gamma) {
  const size_t channels = gamma.size();
  const LayerNorm<Real> forward = layernorm(x, gamma, Vec<Real>(channels));
  LayerNormGradient<Real> grad{Vec<Real>(x.size()), Vec<Real>(channels), Vec<Real>(channels)};
  for (size_t row = 0; row < forward.mean.size(); ++row) {
    Real mean_g = 0;
    Real mean_gx = 0;
    Vec<Real> normalised(channels);
    for (size_t c = 0; c < channels; ++c) {
      const size_t i = row * channels + c;
      normalised[c] = (x[i] - forward.mean[row]) * forward.rstd[row];
      mean_g += dy[i] * gamma[c];
      mean_gx += dy[i] * gamma[c] * normalised[c];
      grad.dgamma[c] += dy[i] * normalised[c];
      grad.dbeta[c] += dy[i];
    }
    mean_g /= static_cast<Real>(channels);
    mean_gx /= static_cast<Real>(channels);
    for (size_t c = 0; c < channels; ++c) {
      const size_t i = row * channels + c;
      grad.dx[i] = forward.rstd[row] * (dy[i] * gamma[c] - mean_g - normalised[c] * mean_gx);
    }
  }
  return grad;
}

template <class Real>
Attention<Real> attention(const AttentionShape& shape, const Vec<Real>& qkv) {
  const HeadIndex index{shape.batch, shape.time, shape.heads, shape.head_dim};
  Attention<Real> result;
  result.out.resize(qkv.size() / 3);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      for (int64_t t = 0; t < shape.time; ++t) {
        Real lse = 0;
        const Vec<Real> p = softmax_row(index, qkv, b, h, t, &lse);
        result.lse.push_back(lse);
        for (int64_t j = 0; j <= t; ++j) {
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            result.out[index.out(b, h, t, d)] += p[at(j)] * qkv[index.v(b, h, j, d)];
          }
        }
      }
    }
  }
  return result;
}

template <class Real>
Vec<Real> attention_backward(const AttentionShape& shape, const Vec<Real>& dout,
                             const Vec<Real>& qkv) {
  const HeadIndex index{shape.batch, shape.time, shape.heads, shape.head_dim};
  const Real scale = Real{1} / std::sqrt(static_cast<Real>(shape.head_dim));
  const Attention<Real> forward = attention(shape, qkv);
  Vec<Real> dqkv(qkv.size());
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      for (int64_t t = 0; t < shape.time; ++t) {
        Real delta = 0;
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          delta += dout[index.out(b, h, t, d)] * forward.out[index.out(b, h, t, d)];
        }
        const Real lse = forward.lse[at((b * shape.heads + h) * shape.time + t)];
        for (int64_t j = 0; j <= t; ++j) {
          Real score = 0;
          Real dp = 0;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            score += scale * qkv[index.q(b, h, t, d)] * qkv[index.k(b, h, j, d)];
            dp += dout[index.out(b, h, t, d)] * qkv[index.v(b, h, j, d)];
          }
          const Real p = std::exp(score - lse);
          const Real dscore = p * (dp - delta) * scale;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            dqkv[index.q(b, h, t, d)] += dscore * qkv[index.k(b, h, j, d)];
            dqkv[index.k(b, h, j, d)] += dscore * qkv[index.q(b, h, t, d)];
            dqkv[index.v(b, h, j, d)] += p * dout[index.out(b, h, t, d)];
          }
        }
      }
    }
  }
  return dqkv;
}

template <class Real>
CrossEntropy<Real> cross_entropy(int64_t vocabulary, Real gradient_scale, const Vec<Real>& logits,
                                 const Vec<int32_t>& targets) {
  const size_t padded = logits.size() / targets.size();
  CrossEntropy<Real> result;
  result.dlogits.resize(logits.size());
  for (size_t row = 0; row < targets.size(); ++row) {
    const Real* l = logits.data() + row * padded;
    const Real max = *std::max_element(l, l + vocabulary);
    Real sum = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      sum += std::exp(l[v] - max);
    }
    result.losses.push_back(std::log(sum) + max - l[targets[row]]);
    for (int64_t v = 0; v < vocabulary; ++v) {
      const Real one_hot = v == targets[row] ? Real{1} : Real{0};
      result.dlogits[row * padded + at(v)] =
          (std::exp(l[v] - max) / sum - one_hot) * gradient_scale;
    }
  }
  return result;
}

template <class Real>
Vec<Real> embedding(int64_t time, const Vec<int32_t>& tokens, const Vec<Real>& wte,
                    const Vec<Real>& wpe) {
  const size_t channels = wpe.size() / at(time);
  Vec<Real> x;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (size_t c = 0; c < channels; ++c) {
      x.push_back(wte[at(tokens[i]) * channels + c] + wpe[i % at(time) * channels + c]);
    }
  }
  return x;
}

template <class Real>
EmbeddingGradient<Real> embedding_backward(int64_t time, int64_t positions,
                                           const Vec<int32_t>& tokens, const Vec<Real>& head,
                                           const Vec<Real>& dx) {
  const size_t channels = dx.size() / tokens.size();
  EmbeddingGradient<Real> grad{head, Vec<Real>(at(positions) * channels)};
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (size_t c = 0; c < channels; ++c) {
      grad.dwte[at(tokens[i]) * channels + c] += dx[i * channels + c];
      grad.dwpe[i % at(time) * channels + c] += dx[i * channels + c];
    }
  }
  return grad;
}

template <class Real>
Vec<Real> column_sum(int64_t columns, const Vec<Real>& in) {
  Vec<Real> sums(at(columns));
  for (size_t i = 0; i < in.size(); ++i) {
    sums[i % at(columns)] += in[i];
  }
  return sums;
}

template <class Real>
AdamWState<Real> adamw(const AdamWState<Real>& before, const Vec<Real>& gradients,
                       const AdamWHyperparameters& with) {
  const auto beta1 = static_cast<Real>(with.beta1);
  const auto beta2 = static_cast<Real>(with.beta2);
  AdamWState<Real> after = before;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Real g = static_cast<Real>(with.gradient_scale) * gradients[i];
    after.m[i] = beta1 * before.m[i] + (1 - beta1) * g;
    after.v[i] = beta2 * before.v[i] + (1 - beta2) * g * g;
    const Real m = after.m[i] / static_cast<Real>(with.bias_correction1);
    const Real v = after.v[i] / static_cast<Real>(with.bias_correction2);
    const Real p = before.parameters[i];
    after.parameters[i] = p - static_cast<Real>(with.learning_rate) *
                                  (m / (std::sqrt(v) + static_cast<Real>(with.epsilon)) +
                                   static_cast<Real>(with.weight_decay) * p);
  }
  return after;
}

#define LOCKSTEP_NAIVE_OPS(Real)                                                                   \
  template Vec<Real> gelu(Gelu, const Vec<Real>&);                                                 \
  template Vec<Real> gelu_derivative(Gelu, const Vec<Real>&);                                      \
  template LayerNorm<Real> layernorm(const Vec<Real>&, const Vec<Real>&, const Vec<Real>&);        \
  template LayerNormGradient<Real> layernorm_backward(const Vec<Real>&, const Vec<Real>&,          \
                                                      const Vec<Real>&);                           \
  template Attention<Real> attention(const AttentionShape&, const Vec<Real>&);                     \
  template Vec<Real> attention_backward(const AttentionShape&, const Vec<Real>&,                   \
                                        const Vec<Real>&);                                         \
  template CrossEntropy<Real> cross_entropy(int64_t, Real, const Vec<Real>&, const Vec<int32_t>&); \
  template Vec<Real> embedding(int64_t, const Vec<int32_t>&, const Vec<Real>&, const Vec<Real>&);  \
  template EmbeddingGradient<Real> embedding_backward(int64_t, int64_t, const Vec<int32_t>&,       \
                                                      const Vec<Real>&, const Vec<Real>&);         \
  template Vec<Real> column_sum(int64_t, const Vec<Real>&);                                        \
  template AdamWState<Real> adamw(const AdamWState<Real>&, const Vec<Real>&,                       \
                                  const AdamWHyperparameters&);
LOCKSTEP_NAIVE_OPS(float)
LOCKSTEP_NAIVE_OPS(double)
#undef LOCKSTEP_NAIVE_OPS

}  // namespace lockstep::naive
