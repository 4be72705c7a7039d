#include "kernels/layernorm.h"

#include <cmath>
#include <vector>

namespace lockstep {

void layernorm_forward(CpuStream& /*stream*/, const LayerNormForward<CpuDevice>& args) {
  const int64_t channels = args.channels;
  const auto count = static_cast<float>(channels);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x.data() + row * channels;
    float* y = args.y.data() + row * channels;
    float mean = 0;
    for (int64_t c = 0; c < channels; ++c) {
      mean += x[c];
    }
    mean /= count;
    float variance = 0;
    for (int64_t c = 0; c < channels; ++c) {
      variance += (x[c] - mean) * (x[c] - mean);
    }
    const float rstd = 1.0F / std::sqrt(variance / count + kLayerNormEpsilon);
    for (int64_t c = 0; c < channels; ++c) {
      y[c] = (x[c] - mean) * rstd * args.gamma[c] + args.beta[c];
    }
    args.mean[row] = mean;
    args.rstd[row] = rstd;
  }
}

void layernorm_backward(CpuStream& /*stream*/, const LayerNormBackward<CpuDevice>& args) {
  const int64_t channels = args.channels;
  const auto count = static_cast<float>(channels);
  std::vector<float> dgamma(static_cast<size_t>(channels));
  std::vector<float> dbeta(static_cast<size_t>(channels));
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x.data() + row * channels;
    const float* dy = args.dy.data() + row * channels;
    float* dx = args.dx.data() + row * channels;
    const float mean = args.mean[row];
    const float rstd = args.rstd[row];
    float mean_g = 0;
    float mean_gx = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const float normalised = (x[c] - mean) * rstd;
      const float g = dy[c] * args.gamma[c];
      mean_g += g;
      mean_gx += g * normalised;
      dgamma[static_cast<size_t>(c)] += dy[c] * normalised;
      dbeta[static_cast<size_t>(c)] += dy[c];
    }
    mean_g /= count;
    mean_gx /= count;
    for (int64_t c = 0; c < channels; ++c) {
      const float normalised = (x[c] - mean) * rstd;
      dx[c] += rstd * (dy[c] * args.gamma[c] - mean_g - normalised * mean_gx);
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<size_t>(c);
    args.dgamma[c] = args.accumulate ? args.dgamma[c] + dgamma[i] : dgamma[i];
    args.dbeta[c] = args.accumulate ? args.dbeta[c] + dbeta[i] : dbeta[i];
  }
}

}  // namespace lockstep
