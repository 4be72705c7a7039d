#include "kernels/cpu/gemm_pack.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// Exchanges, between two rows of a square of lanes, the blocks of `kWidth` lanes off the diagonal.
template <int kWidth>
inline void exchange(FloatVec& low, FloatVec& high) {
  IntVec from_low = {};
  IntVec from_high = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool second = (lane & kWidth) != 0;
    from_low[lane] = second ? kLanes + lane - kWidth : lane;
    from_high[lane] = second ? kLanes + lane : lane + kWidth;
  }
  const FloatVec new_low = __builtin_shuffle(low, high, from_low);
  high = __builtin_shuffle(low, high, from_high);
  low = new_low;
}

template <int kWidth>
inline void transpose_blocks(FloatVec (&square)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kWidth) == 0) {
      exchange<kWidth>(square[i], square[i + kWidth]);
    }
  }
  if constexpr (kWidth > 1) {
    transpose_blocks<kWidth / 2>(square);
  }
}

// One vector's worth of columns of a panel, from b stored by columns.
void pack_columns_by_transposing(float* to, int64_t to_stride, const float* b, int64_t column,
                                 int64_t depth, int64_t columns) {
  for (int64_t p = 0; p < depth; p += kLanes) {
    const int64_t count = depth - p < kLanes ? depth - p : int64_t{kLanes};
    FloatVec square[kLanes];
    if (count == kLanes && columns == kLanes) {
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) {
        square[j] = load(b + j * column + p);
      }
    } else {
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) {
        square[j] = j < columns ? load_first(b + j * column + p, count) : FloatVec{};
      }
    }
    transpose_blocks<kLanes / 2>(square);
#pragma GCC unroll 16
    for (int q = 0; q < kLanes; ++q) {
      if (q < count) {
        store(to + (p + q) * to_stride, square[q]);
      }
    }
  }
}

// The same from b stored by rows.
void pack_columns(float* to, int64_t to_stride, const float* b, int64_t row, int64_t depth,
                  int64_t columns) {
  if (columns == kLanes) {
    for (int64_t p = 0; p < depth; ++p) {
      store(to + p * to_stride, load(b + p * row));
    }
  } else {
    for (int64_t p = 0; p < depth; ++p) {
      store(to + p * to_stride, load_first(b + p * row, columns));
    }
  }
}

}  // namespace

void pack_a_tile(float* to, const float* a, int64_t stride, int64_t rows, int64_t depth) {
  for (int64_t i = 0; i < rows; i += kLanes) {
    pack_columns(to + i, kPackedRows, a + i, stride, depth,
                 rows - i < kLanes ? rows - i : int64_t{kLanes});
  }
}

void pack_b(float* to, const float* b, int64_t row, int64_t column, int64_t depth,
            int64_t columns) {
  for (int64_t panel = 0; panel < columns; panel += kTileColumns) {
    const int64_t rest = columns - panel;
    const int64_t width = rest <= kLanes ? kLanes : kTileColumns;
    for (int64_t j = 0; j < width; j += kLanes) {
      const int64_t count = rest - j < kLanes ? rest - j : int64_t{kLanes};
      if (column == 1) {
        pack_columns(to + j, width, b + panel + j, row, depth, count);
      } else {
        pack_columns_by_transposing(to + j, width, b + (panel + j) * column, column, depth, count);
      }
    }
    to += width * depth;
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
