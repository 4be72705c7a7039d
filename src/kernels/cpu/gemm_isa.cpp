#include "kernels/cpu/gemm_isa.h"

#include "kernels/cpu/gemm_pack.h"
#include "kernels/cpu/gemm_tile.h"
#include "kernels/cpu/simd_math.h"

// A product by blocks (Goto and van de Geijn, 2008): b is packed once into panels as wide as a
// tile, a block of rows of a stays in the second-level cache while the panels pass by, and each
// tile of c is summed up in registers. Blocks of k beyond the first go on from sums kept in
// scratch, never in c: c is written once, by the epilogue.
namespace lockstep::LOCKSTEP_ISA {
namespace {

// Longest run of k that one tile is summed over: a panel of b then fits the second-level cache.
constexpr int64_t kBlockK = 768;
// Elements of a in a block of rows, and of packed b.
constexpr int64_t kBlockA = 64 * 1024;
constexpr int64_t kBlockB = 2 * 1024 * 1024;

constexpr int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
constexpr int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

// [0, size) cut into `count` pieces whose sizes differ by one at most.
struct Cut {
  int64_t size;
  int64_t count;
  int64_t begin(int64_t piece) const { return piece * size / count; }
  int64_t length(int64_t piece) const { return begin(piece + 1) - begin(piece); }
  int64_t longest() const { return ceil_div(size, count); }
};
constexpr Cut cut(int64_t size, int64_t most) {
  return {size, larger(1, ceil_div(size, most))};
}

// How a rectangle is walked. A function of k alone along k: that order decides the bits.
struct Blocks {
  Cut k;
  Cut rows;
  int64_t columns;         // of c in one pass, but for the last
  int64_t packed_columns;  // the same in packed form
  bool pack_a;

  Blocks(const GemmProduct& product, const GemmRectangle& rectangle)
      : k(cut(product.k, kBlockK)),
        rows(cut(rectangle.row_end - rectangle.row,
                 larger(1, kBlockA / (larger(1, k.longest()) * kTileRows)) * kTileRows)),
        pack_a(product.a.row == 1 && product.a.column != 1) {
    const int64_t fitting = kBlockB / (larger(1, product.k) * kTileColumns) * kTileColumns;
    columns = smaller(rectangle.column_end - rectangle.column, larger(fitting, kTileColumns));
    packed_columns = round_up(columns, kLanes);
  }
};

// The parts of the scratch memory.
struct Scratch {
  float* b;
  float* a;
  float* sums;
  int64_t size;

  Scratch(const GemmProduct& product, const Blocks& blocks, float* memory) : b(memory) {
    const int64_t size_b = product.k * blocks.packed_columns;
    const int64_t tiles = ceil_div(blocks.rows.longest(), kTileRows) + 1;
    const int64_t size_a = blocks.pack_a ? tiles * kPackedRows * blocks.k.longest() : 0;
    const int64_t rows = blocks.k.count > 1 ? blocks.rows.longest() : kTileRows;
    const int64_t size_sums =
        rows * (blocks.k.count > 1 ? blocks.packed_columns : int64_t{kTileColumns});
    a = b + round_up(size_b, kLanes);
    sums = a + size_a;
    size = round_up(size_b, kLanes) + size_a + size_sums;
  }
};

inline FloatVec load_count(const float* from, int64_t count) {
  return count >= kLanes ? load(from) : load_first(from, count);
}
inline void store_count(float* to, FloatVec value, int64_t count) {
  if (count >= kLanes) {
    store(to, value);
  } else {
    store_first(to, value, count);
  }
}

// Takes `count` finished elements of the product, those of c from `at` on, in column `column`.
inline void finish(const GemmProduct& product, FloatVec value, int64_t at, int64_t column,
                   int64_t count) {
  const GemmEpilogue& epilogue = product.epilogue;
  if (epilogue.bias != nullptr) {
    value += load_count(epilogue.bias + column, count);
  }
  if (epilogue.residual != nullptr) {
    value += load_count(epilogue.residual + at, count);
  }
  if (epilogue.pre_activation != nullptr) {
    store_count(epilogue.pre_activation + at, value, count);
    value = epilogue.gelu_erf ? gelu_erf(value) : gelu_tanh(value);
  }
  if (epilogue.gelu_input != nullptr) {
    const FloatVec x = load_count(epilogue.gelu_input + at, count);
    value = value * (epilogue.gelu_erf ? gelu_erf_derivative(x) : gelu_tanh_derivative(x));
  }
  if (epilogue.accumulate) {
    value = load_count(product.c + at, count) + value;
  }
  store_count(product.c + at, value, count);
}

bool is_plain(const GemmEpilogue& epilogue) {
  return epilogue.bias == nullptr && epilogue.residual == nullptr &&
         epilogue.pre_activation == nullptr && epilogue.gelu_input == nullptr &&
         !epilogue.accumulate;
}

// One block of rows and columns of c against all of k.
struct BlockOfC {
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
};

void block_product(const GemmProduct& product, const Blocks& blocks, const Scratch& scratch,
                   const BlockOfC& block) {
  const Cut tiles = cut(block.rows, kTileRows);
  const int64_t packed_columns = round_up(block.columns, kLanes);
  const bool keeps_sums = blocks.k.count > 1;
  const bool plain = is_plain(product.epilogue);
  for (int64_t kb = 0; kb < blocks.k.count; ++kb) {
    const int64_t p = blocks.k.begin(kb);
    const int64_t depth = blocks.k.length(kb);
    const bool last = kb + 1 == blocks.k.count;
    const float* a = product.a.data + block.row * product.a.row + p * product.a.column;
    if (blocks.pack_a) {
      for (int64_t t = 0; t < tiles.count; ++t) {
        pack_a_tile(scratch.a + t * kPackedRows * depth, a + tiles.begin(t), product.a.column,
                    tiles.length(t), depth);
      }
    }
    const float* b = scratch.b + p * packed_columns;
    for (int64_t j = 0; j < block.columns; j += kTileColumns) {
      const int64_t columns = smaller(kTileColumns, block.columns - j);
      const int64_t vecs = ceil_div(columns, kLanes);
      for (int64_t t = 0; t < tiles.count; ++t) {
        const int64_t i = tiles.begin(t);
        const int64_t rows = tiles.length(t);
        const bool direct = plain && !keeps_sums && columns == vecs * kLanes;
        const int64_t at = (block.row + i) * product.n + block.column + j;
        TileArgs args;
        args.k = depth;
        args.a = blocks.pack_a ? scratch.a + t * kPackedRows * depth : a + i * product.a.row;
        args.a_stride = blocks.pack_a ? kPackedRows : product.a.row;
        args.b = b;
        args.out =
            direct ? product.c + at : scratch.sums + (keeps_sums ? i * packed_columns + j : 0);
        args.out_stride = direct ? product.n : keeps_sums ? packed_columns : kTileColumns;
        args.add = kb > 0;
        tile_kernel(rows, vecs, blocks.pack_a)(args);
        if (last && !direct) {
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < columns; v += kLanes) {
              finish(product, load(args.out + r * args.out_stride + v), at + r * product.n + v,
                     block.column + j + v, columns - v);
            }
          }
        }
      }
      b += vecs * kLanes * depth;
    }
  }
}

}  // namespace

int64_t gemm_scratch_size(const GemmProduct& product, const GemmRectangle& rectangle) {
  return Scratch(product, Blocks(product, rectangle), nullptr).size;
}

void gemm_rectangle(const GemmProduct& product, const GemmRectangle& rectangle, float* scratch) {
  const Blocks blocks(product, rectangle);
  const Scratch parts(product, blocks, scratch);
  for (int64_t column = rectangle.column; column < rectangle.column_end; column += blocks.columns) {
    const int64_t columns = smaller(blocks.columns, rectangle.column_end - column);
    for (int64_t kb = 0; kb < blocks.k.count; ++kb) {
      const int64_t p = blocks.k.begin(kb);
      pack_b(parts.b + p * round_up(columns, kLanes),
             product.b.data + p * product.b.row + column * product.b.column, product.b.row,
             product.b.column, blocks.k.length(kb), columns);
    }
    for (int64_t block = 0; block < blocks.rows.count; ++block) {
      block_product(
          product, blocks, parts,
          {rectangle.row + blocks.rows.begin(block), blocks.rows.length(block), column, columns});
    }
  }
}

void gemm_sum_parts(const GemmProduct& product, const GemmRectangle& rectangle, const float* from,
                    int64_t parts) {
  const int64_t part_size = product.m * product.n;
  for (int64_t i = rectangle.row; i < rectangle.row_end; ++i) {
    for (int64_t j = rectangle.column; j < rectangle.column_end; j += kLanes) {
      const int64_t count = smaller(kLanes, rectangle.column_end - j);
      const int64_t at = i * product.n + j;
      FloatVec sum = load_count(from + at, count);
      for (int64_t part = 1; part < parts; ++part) {
        sum += load_count(from + part * part_size + at, count);
      }
      finish(product, sum, at, j, count);
    }
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
