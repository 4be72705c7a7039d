#include "kernels/cpu/reduce_isa.h"

#include "kernels/cpu/simd.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// Half a vector of floats widens to a whole vector of doubles.
constexpr int kHalf = kLanes / 2;
// NOLINTBEGIN(modernize-use-using): GCC keeps may_alias and alignment on a typedef only
typedef float HalfVec
    __attribute__((vector_size(kHalf * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef double DoubleVec __attribute__((vector_size(kHalf * sizeof(double))));
// NOLINTEND(modernize-use-using)

// So many sums run side by side on every instruction set, whatever its vectors hold.
constexpr int kChains = 32;

struct Same {
  DoubleVec operator()(DoubleVec x) const { return x; }
};
struct Square {
  DoubleVec operator()(DoubleVec x) const { return x * x; }
};

template <class Function>
double sum_of(int64_t count, const float* x, Function function) {
  DoubleVec sums[kChains / kHalf] = {};
  int64_t i = 0;
  for (; i + kChains <= count; i += kChains) {
    for (int s = 0; s < kChains / kHalf; ++s) {
      const HalfVec part = *reinterpret_cast<const HalfVec*>(x + i + s * kHalf);
      sums[s] += function(__builtin_convertvector(part, DoubleVec));
    }
  }
  double chains[kChains];
  for (int c = 0; c < kChains; ++c) {
    chains[c] = sums[c / kHalf][c % kHalf];
  }
  for (int c = 0; i < count; ++i, ++c) {
    chains[c] += function(DoubleVec{} + static_cast<double>(x[i]))[0];
  }
  for (int half = kChains / 2; half > 0; half /= 2) {
    for (int c = 0; c < half; ++c) {
      chains[c] += chains[c + half];
    }
  }
  return chains[0];
}

}  // namespace

void sum_rows(int64_t rows, int64_t columns, float* sums, const float* in) {
  int64_t row = 0;
  for (int64_t c = 0; c < columns; ++c) {
    sums[c] = 0;
  }
  // Four rows at a time: the sums are loaded and stored a quarter as often.
  for (; row + 4 <= rows; row += 4) {
    const float* r = in + row * columns;
    int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) {
      const FloatVec first = load(r + c) + load(r + columns + c);
      const FloatVec second = load(r + 2 * columns + c) + load(r + 3 * columns + c);
      store(sums + c, load(sums + c) + (first + second));
    }
    for (; c < columns; ++c) {
      sums[c] += (r[c] + r[columns + c]) + (r[2 * columns + c] + r[3 * columns + c]);
    }
  }
  for (; row < rows; ++row) {
    add_range(columns, sums, sums, in + row * columns);
  }
}

void put(bool accumulate, int64_t count, float* to, const float* from) {
  if (accumulate) {
    add_range(count, to, to, from);
    return;
  }
  __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

void add_range(int64_t count, float* to, const float* a, const float* b) {
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int u = 0; u < 4; ++u) {
      store(to + i + u * kLanes, load(a + i + u * kLanes) + load(b + i + u * kLanes));
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    store(to + i, load(a + i) + load(b + i));
  }
  for (; i < count; ++i) {
    to[i] = a[i] + b[i];
  }
}

double sum_range(int64_t count, const float* x) {
  return sum_of(count, x, Same{});
}

double sum_squares_range(int64_t count, const float* x) {
  return sum_of(count, x, Square{});
}

}  // namespace lockstep::LOCKSTEP_ISA
