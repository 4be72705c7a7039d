#include "kernels/cpu/gemm_tile.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// Hides where a pointer came from, so that the compiler keeps it in a register instead of adding it
// up again for every row.
inline const float* opaque(const float* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// The rows of a by few registers: each pointer reaches four rows through scaled strides.
template <int kRows>
struct RowPointers {
  static constexpr int kGroups = (kRows + 3) / 4;
  const float* group[kGroups];
  int64_t stride;
  int64_t stride3;

  RowPointers(const float* a, int64_t a_stride) : stride(a_stride), stride3(3 * a_stride) {
    for (int g = 0; g < kGroups; ++g) {
      group[g] = opaque(a + int64_t{4} * g * a_stride);
    }
  }
  float at(int row, int64_t p) const {
    const float* base = group[row / 4] + p;
    switch (row % 4) {
      case 0:
        return base[0];
      case 1:
        return base[stride];
      case 2:
        return base[2 * stride];
      default:
        return base[stride3];
    }
  }
};

constexpr int kLineFloats = 16;
// Rows of b, and columns of a, that are asked for ahead: strides of a page or more defeat the
// processor's own prefetching.
constexpr int kAhead = 8;

// Asks for the lines of the output while the sums are being made.
template <int kRows, int kVecs>
inline void prefetch_output(const TileArgs& args) {
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVecs * kLanes; j += kLineFloats) {
      __builtin_prefetch(args.out + i * args.out_stride + j, 1);
    }
  }
}

template <int kRows, int kVecs>
inline void store_sums(const FloatVec (&sum)[kRows][kVecs], const TileArgs& args) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      float* const out = args.out + i * args.out_stride + static_cast<int64_t>(v) * kLanes;
      store(out, args.add ? load(out) + sum[i][v] : sum[i][v]);
    }
  }
}

// One row of b: loaded for the tile, asked for ahead.
template <int kVecs>
inline void next_row(FloatVec (&row)[kVecs], const float* b, int64_t stride) {
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    row[v] = load(b + static_cast<int64_t>(v) * kLanes);
  }
  for (int j = 0; j < kVecs * kLanes; j += kLineFloats) {
    __builtin_prefetch(b + kAhead * stride + j);
  }
}

template <int kVecs>
inline void add_row(FloatVec (&sum)[kVecs], float a, const FloatVec (&b)[kVecs]) {
  const FloatVec factor = broadcast(a);
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    sum[v] = multiply_add(factor, b[v], sum[v]);
  }
}

template <int kRows, int kVecs>
void product_a_by_rows(const TileArgs& args) {
  prefetch_output<kRows, kVecs>(args);
  FloatVec sum[kRows][kVecs] = {};
  const RowPointers<kRows> a(args.a, args.a_stride);
  const float* b = args.b;
  for (int64_t p = 0; p < args.k; ++p) {
    FloatVec b_row[kVecs];
    next_row<kVecs>(b_row, b, args.b_stride);
    b += args.b_stride;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      add_row<kVecs>(sum[i], a.at(i, p), b_row);
    }
  }
  store_sums<kRows, kVecs>(sum, args);
}

template <int kRows, int kVecs>
void product_a_by_columns(const TileArgs& args) {
  prefetch_output<kRows, kVecs>(args);
  FloatVec sum[kRows][kVecs] = {};
  const float* a = args.a;
  const float* b = args.b;
  for (int64_t p = 0; p < args.k; ++p) {
    FloatVec b_row[kVecs];
    next_row<kVecs>(b_row, b, args.b_stride);
    __builtin_prefetch(a + kAhead * args.a_stride);
    b += args.b_stride;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      add_row<kVecs>(sum[i], a[i], b_row);
    }
    a += args.a_stride;
  }
  store_sums<kRows, kVecs>(sum, args);
}

struct KernelTable {
  TileKernel by_rows[kTileRows][kTileVecs];
  TileKernel by_columns[kTileRows][kTileVecs];
};

template <int kRows>
constexpr void fill(KernelTable& table) {
  static_assert(kTileVecs == 2);
  table.by_rows[kRows - 1][0] = product_a_by_rows<kRows, 1>;
  table.by_rows[kRows - 1][1] = product_a_by_rows<kRows, 2>;
  table.by_columns[kRows - 1][0] = product_a_by_columns<kRows, 1>;
  table.by_columns[kRows - 1][1] = product_a_by_columns<kRows, 2>;
  if constexpr (kRows > 1) {
    fill<kRows - 1>(table);
  }
}

constexpr KernelTable make_table() {
  KernelTable table = {};
  fill<kTileRows>(table);
  return table;
}

constexpr KernelTable kKernels = make_table();

}  // namespace

TileKernel tile_kernel(int64_t rows, int64_t vecs, bool a_by_columns) {
  return a_by_columns ? kKernels.by_columns[rows - 1][vecs - 1]
                      : kKernels.by_rows[rows - 1][vecs - 1];
}

}  // namespace lockstep::LOCKSTEP_ISA
