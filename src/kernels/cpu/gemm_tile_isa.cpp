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
      group[g] = opaque(a + 4 * g * a_stride);
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

template <int kRows, int kVecs>
inline void start_sums(FloatVec (&sum)[kRows][kVecs], const TileArgs& args) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      sum[i][v] = args.add ? load(args.out + i * args.out_stride + v * kLanes) : FloatVec{};
    }
  }
}

template <int kRows, int kVecs>
inline void store_sums(const FloatVec (&sum)[kRows][kVecs], const TileArgs& args) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      store(args.out + i * args.out_stride + v * kLanes, sum[i][v]);
    }
  }
}

template <int kRows, int kVecs>
inline void add_row(FloatVec (&sum)[kVecs], float a, const FloatVec (&b)[kVecs]) {
  const FloatVec factor = broadcast(a);
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    sum[v] = multiply_add(factor, b[v], sum[v]);
  }
}

template <int kRows, int kVecs>
void product_a_by_rows(const TileArgs& args) {
  FloatVec sum[kRows][kVecs];
  start_sums<kRows, kVecs>(sum, args);
  const RowPointers<kRows> a(args.a, args.a_stride);
  const float* b = args.b;
  for (int64_t p = 0; p < args.k; ++p) {
    FloatVec b_row[kVecs];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      b_row[v] = load(b + v * kLanes);
    }
    b += kVecs * kLanes;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      add_row<kRows, kVecs>(sum[i], a.at(i, p), b_row);
    }
  }
  store_sums<kRows, kVecs>(sum, args);
}

template <int kRows, int kVecs>
void product_a_by_columns(const TileArgs& args) {
  FloatVec sum[kRows][kVecs];
  start_sums<kRows, kVecs>(sum, args);
  const float* a = args.a;
  const float* b = args.b;
  for (int64_t p = 0; p < args.k; ++p) {
    FloatVec b_row[kVecs];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      b_row[v] = load(b + v * kLanes);
    }
    b += kVecs * kLanes;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      add_row<kRows, kVecs>(sum[i], a[i], b_row);
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
