#include "kernels/cpu/gemm_pack.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <int... kLane>
struct Lanes {};
template <int kCount, int... kLane>
struct CountLanes : CountLanes<kCount - 1, kCount - 1, kLane...> {};
template <int... kLane>
struct CountLanes<0, kLane...> {
  using Type = Lanes<kLane...>;
};

// Exchanges, between two rows of a square of lanes, the blocks of kWidth lanes off the diagonal.
template <int kWidth, int... kLane>
inline void exchange(FloatVec& low, FloatVec& high, Lanes<kLane...> /*all*/) {
  const FloatVec new_low = __builtin_shufflevector(
      low, high, ((kLane & kWidth) != 0 ? kLanes + kLane - kWidth : kLane)...);
  high = __builtin_shufflevector(low, high,
                                 ((kLane & kWidth) != 0 ? kLanes + kLane : kLane + kWidth)...);
  low = new_low;
}

template <int kWidth>
inline void transpose_blocks(FloatVec (&square)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kWidth) == 0) {
      exchange<kWidth>(square[i], square[i + kWidth], CountLanes<kLanes>::Type());
    }
  }
  if constexpr (kWidth > 1) {
    transpose_blocks<kWidth / 2>(square);
  }
}

// Rows of b that are copied at a time: each from end to end, while its page is at hand.
constexpr int64_t kRun = 16;

constexpr int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

constexpr int64_t width_of_panel(int64_t rest) {
  return rest <= kLanes ? kLanes : kTileColumns;
}

// b stored by columns: up to kLanes columns of a panel.
void pack_transposed(float* to, int64_t to_stride, const float* b, int64_t column, int64_t depth,
                     int64_t columns) {
  for (int64_t p = 0; p < depth; p += kLanes) {
    const int64_t count = smaller(kLanes, depth - p);
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

// b stored by rows: `depth` rows of one panel, `rest` columns of which exist.
void pack_rows(float* to, const float* b, int64_t row, int64_t depth, int64_t rest) {
  if (rest >= kTileColumns) {
    for (int64_t p = 0; p < depth; ++p) {
      for (int64_t v = 0; v < kTileColumns; v += kLanes) {
        store(to + p * kTileColumns + v, load(b + p * row + v));
      }
    }
    return;
  }
  const int64_t width = width_of_panel(rest);
  for (int64_t p = 0; p < depth; ++p) {
    for (int64_t j = 0; j < width; j += kLanes) {
      const int64_t count = smaller(kLanes, rest - j);
      store(to + p * width + j, load_first(b + p * row + j, count));
    }
  }
}

}  // namespace

void pack_b(float* to, const float* b, int64_t row, int64_t column, int64_t depth,
            int64_t columns) {
  if (column == 1) {
    for (int64_t p = 0; p < depth; p += kRun) {
      for (int64_t j = 0; j < columns; j += kTileColumns) {
        const int64_t rest = columns - j;
        pack_rows(to + j * depth + p * width_of_panel(rest), b + p * row + j, row,
                  smaller(kRun, depth - p), rest);
      }
    }
    return;
  }
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t panel = j / kTileColumns * kTileColumns;
    pack_transposed(to + panel * depth + j % kTileColumns, width_of_panel(columns - panel),
                    b + j * column, column, depth, smaller(kLanes, columns - j));
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
