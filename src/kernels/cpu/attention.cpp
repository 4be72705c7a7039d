#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

float dot(const float* a, const float* b, int64_t n) {
  float total = 0;
  for (int64_t i = 0; i < n; ++i) {
    total += a[i] * b[i];
  }
  return total;
}

// One row of attention over `keys` rows of k and v, `stride` elements apart; returns lse. `scores`
// holds a row.
float attend(float* out, float* scores, const float* q, const float* k, const float* v,
             int64_t keys, int64_t stride, int64_t head_dim) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  for (int64_t j = 0; j < keys; ++j) {
    scores[j] = scale * dot(q, k + j * stride, head_dim);
  }
  const float max = *std::max_element(scores, scores + keys);
  float sum = 0;
  std::fill(out, out + head_dim, 0.0F);
  for (int64_t j = 0; j < keys; ++j) {
    const float p = std::exp(scores[j] - max);
    sum += p;
    for (int64_t d = 0; d < head_dim; ++d) {
      out[d] += p * v[j * stride + d];
    }
  }
  for (int64_t d = 0; d < head_dim; ++d) {
    out[d] /= sum;
  }
  return max + std::log(sum);
}

}  // namespace

void attention_forward(CpuStream& /*stream*/, const AttentionForward<CpuDevice>& args) {
  const auto [batch, time, heads, head_dim] = args.shape;
  const int64_t channels = heads * head_dim;
  std::vector<float> scores(static_cast<size_t>(time));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const float* q = args.qkv.data() + b * time * 3 * channels + h * head_dim;
      for (int64_t t = 0; t < time; ++t) {
        float* out = args.out.data() + (b * time + t) * channels + h * head_dim;
        args.lse[(b * heads + h) * time + t] =
            attend(out, scores.data(), q + t * 3 * channels, q + channels, q + 2 * channels, t + 1,
                   3 * channels, head_dim);
      }
    }
  }
}

void attention_backward(CpuStream& /*stream*/, const AttentionBackward<CpuDevice>& args) {
  const auto [batch, time, heads, head_dim] = args.shape;
  const int64_t channels = heads * head_dim;
  const int64_t stride = 3 * channels;
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  std::fill(args.dqkv.begin(), args.dqkv.end(), 0.0F);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const float* q = args.qkv.data() + b * time * stride + h * head_dim;
      float* dq = args.dqkv.data() + b * time * stride + h * head_dim;
      const int64_t row0 = (b * heads + h) * time;
      for (int64_t t = 0; t < time; ++t) {
        const int64_t at = (b * time + t) * channels + h * head_dim;
        const float* dout = args.dout.data() + at;
        const float delta = dot(dout, args.out.data() + at, head_dim);
        args.delta[row0 + t] = delta;
        for (int64_t j = 0; j <= t; ++j) {
          const float* k = q + channels + j * stride;
          const float* v = k + channels;
          const float score = scale * dot(q + t * stride, k, head_dim);
          const float p = std::exp(score - args.lse[row0 + t]);
          const float ds = scale * p * (dot(dout, v, head_dim) - delta);
          for (int64_t d = 0; d < head_dim; ++d) {
            dq[t * stride + d] += ds * k[d];
            dq[j * stride + channels + d] += ds * q[t * stride + d];
            dq[j * stride + 2 * channels + d] += p * dout[d];
          }
        }
      }
    }
  }
}

void attention_decode(CpuStream& /*stream*/, const AttentionDecode<CpuDevice>& args) {
  const int64_t channels = args.heads * args.head_dim;
  const int64_t position = args.position;
  const float* qkv = args.qkv.data();
  std::copy_n(qkv + channels, channels, args.k_cache.data() + position * channels);
  std::copy_n(qkv + 2 * channels, channels, args.v_cache.data() + position * channels);
  std::vector<float> scores(static_cast<size_t>(position + 1));
  for (int64_t h = 0; h < args.heads; ++h) {
    const int64_t at = h * args.head_dim;
    attend(args.out.data() + at, scores.data(), qkv + at, args.k_cache.data() + at,
           args.v_cache.data() + at, position + 1, channels, args.head_dim);
  }
}

}  // namespace lockstep
