#include "kernels/cpu/layernorm_isa.h"

#include "kernels/cpu/simd.h"
#include "kernels/layernorm.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// So many short rows go side by side: their sums do not wait for each other, and gamma, beta and
// the sums over rows are loaded once for all of them. Long rows go one by one, in the order of
// memory, which the processor's prefetching follows: at 4096 x 384 that is twice as fast.
constexpr int kRows = 4;
constexpr int64_t kShortRow = 256;

// The first `count` lanes, zero in the others.
FloatVec keep_first(FloatVec value, int64_t count) {
  float lanes[kLanes];
  store(lanes, value);
  return load_first(lanes, count);
}

// Calls body(offset, load, store, keep) for each vector of a row of `channels`: whole ones, then
// what is left.
struct Whole {
  FloatVec get(const float* from) const { return load(from); }
  void set(float* to, FloatVec value) const { store(to, value); }
  FloatVec keep(FloatVec value) const { return value; }
};
struct First {
  int64_t count;
  FloatVec get(const float* from) const { return load_first(from, count); }
  void set(float* to, FloatVec value) const { store_first(to, value, count); }
  FloatVec keep(FloatVec value) const { return keep_first(value, count); }
};
template <class Body>
inline __attribute__((always_inline)) void for_vectors(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    body(c, Whole{});
  }
  if (c < channels) {
    body(c, First{channels - c});
  }
}

template <int Rows>
void forward(const LayerNormForwardRows& args, int64_t row) {
  const int64_t channels = args.channels;
  const float* x = args.x + row * channels;
  float* y = args.y + row * channels;
  const float share = 1.0F / static_cast<float>(channels);
  FloatVec sums[Rows] = {};
  for_vectors(channels, [&](int64_t c, auto part) {
    for (int r = 0; r < Rows; ++r) {
      sums[r] += part.get(x + r * channels + c);
    }
  });
  FloatVec means[Rows];
  FloatVec squares[Rows] = {};
  for (int r = 0; r < Rows; ++r) {
    args.mean[row + r] = sum_lanes(sums[r]) * share;
    means[r] = broadcast(args.mean[row + r]);
  }
  for_vectors(channels, [&](int64_t c, auto part) {
    for (int r = 0; r < Rows; ++r) {
      const FloatVec d = part.keep(part.get(x + r * channels + c) - means[r]);
      squares[r] = multiply_add(d, d, squares[r]);
    }
  });
  FloatVec rstds[Rows];
  for (int r = 0; r < Rows; ++r) {
    const float variance = sum_lanes(squares[r]) * share;
    args.rstd[row + r] = 1.0F / __builtin_sqrtf(variance + kLayerNormEpsilon);
    rstds[r] = broadcast(args.rstd[row + r]);
  }
  for_vectors(channels, [&](int64_t c, auto part) {
    const FloatVec gamma = part.get(args.gamma + c);
    const FloatVec beta = part.get(args.beta + c);
    for (int r = 0; r < Rows; ++r) {
      const FloatVec normalised = (part.get(x + r * channels + c) - means[r]) * rstds[r];
      part.set(y + r * channels + c, multiply_add(normalised, gamma, beta));
    }
  });
}

template <int Rows>
void backward(const LayerNormBackwardRows& args, int64_t row) {
  const int64_t channels = args.channels;
  const float* x = args.x + row * channels;
  const float* dy = args.dy + row * channels;
  float* dx = args.dx + row * channels;
  const float share = 1.0F / static_cast<float>(channels);
  FloatVec means[Rows];
  FloatVec rstds[Rows];
  for (int r = 0; r < Rows; ++r) {
    means[r] = broadcast(args.mean[row + r]);
    rstds[r] = broadcast(args.rstd[row + r]);
  }
  FloatVec sums_g[Rows] = {};
  FloatVec sums_gx[Rows] = {};
  for_vectors(channels, [&](int64_t c, auto part) {
    const FloatVec gamma = part.get(args.gamma + c);
    FloatVec dgamma = part.get(args.dgamma + c);
    FloatVec dbeta = part.get(args.dbeta + c);
    for (int r = 0; r < Rows; ++r) {
      const FloatVec d = part.get(dy + r * channels + c);
      const FloatVec normalised = (part.get(x + r * channels + c) - means[r]) * rstds[r];
      const FloatVec g = d * gamma;
      sums_g[r] += g;
      sums_gx[r] = multiply_add(g, normalised, sums_gx[r]);
      dgamma = multiply_add(d, normalised, dgamma);
      dbeta += d;
    }
    part.set(args.dgamma + c, dgamma);
    part.set(args.dbeta + c, dbeta);
  });
  FloatVec means_g[Rows];
  FloatVec means_gx[Rows];
  for (int r = 0; r < Rows; ++r) {
    means_g[r] = broadcast(sum_lanes(sums_g[r]) * share);
    means_gx[r] = broadcast(sum_lanes(sums_gx[r]) * share);
  }
  for_vectors(channels, [&](int64_t c, auto part) {
    const FloatVec gamma = part.get(args.gamma + c);
    for (int r = 0; r < Rows; ++r) {
      const int64_t i = r * channels + c;
      const FloatVec normalised = (part.get(x + i) - means[r]) * rstds[r];
      const FloatVec centred = part.get(dy + i) * gamma - means_g[r];
      // Finished before it is added: rounded as a gradient of its own.
      const FloatVec finished = rstds[r] * multiply_add(-normalised, means_gx[r], centred);
      part.set(dx + i, part.get(dx + i) + finished);
    }
  });
}

}  // namespace

void layernorm_rows(const LayerNormForwardRows& args) {
  int64_t row = 0;
  if (args.channels <= kShortRow) {
    for (; row + kRows <= args.rows; row += kRows) {
      forward<kRows>(args, row);
    }
  }
  for (; row < args.rows; ++row) {
    forward<1>(args, row);
  }
}

void layernorm_backward_rows(const LayerNormBackwardRows& args) {
  int64_t row = 0;
  if (args.channels <= kShortRow) {
    for (; row + kRows <= args.rows; row += kRows) {
      backward<kRows>(args, row);
    }
  }
  for (; row < args.rows; ++row) {
    backward<1>(args, row);
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
