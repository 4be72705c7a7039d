#include "kernels/cpu/gemm_isa.h"

#include "kernels/cpu/gemm_pack.h"
#include "kernels/cpu/gemm_tile.h"
#include "kernels/cpu/simd_math.h"

// A product by blocks (Goto and van de Geijn, 2008), with three changes that the shapes of a GPT
// ask for. a is read where it lies: a tile is so wide that broadcasting from memory is free. b is
// read where it lies when few rows would pay for its packing. And c is never a store of unfinished
// sums unless nothing follows the product: those of a long k are kept in scratch.
namespace lockstep::LOCKSTEP_ISA {
namespace {

// The sizes were chosen by gemm_bench on the shapes of its models, on a Zen 4 core with 32 KiB and
// 1 MiB of cache; from half to twice each, times change by a few percent.
//
// Longest run of k that one tile is summed over.
constexpr int64_t kBlockK = 512;
// Elements of a that stay in the second-level cache while the panels of b pass by.
constexpr int64_t kBlockA = int64_t{64} * 1024;
// Elements of packed b: where a row of tiles passes over b it has to stay in the second-level
// cache, where a panel passes over the rows of a the third level does.
constexpr int64_t kBlockBNear = int64_t{192} * 1024;
constexpr int64_t kBlockBFar = int64_t{512} * 1024;
// Elements of c whose unfinished sums are kept.
constexpr int64_t kBlockC = int64_t{1024} * 1024;
// From this many rows on packing b pays for itself.
constexpr int64_t kRowsForPacking = 512;

constexpr int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
constexpr int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// [0, size) cut into as few pieces of at most `most` as do; their sizes differ by one at most.
struct Cut {
  int64_t size = 0;
  int64_t count = 1;

  int64_t begin(int64_t piece) const { return piece * size / count; }
  int64_t length(int64_t piece) const { return begin(piece + 1) - begin(piece); }
  int64_t longest() const { return ceil_div(size, count); }
};
constexpr Cut cut(int64_t size, int64_t most) {
  return {size, larger(1, ceil_div(size, larger(1, most)))};
}

bool is_plain(const GemmEpilogue& epilogue) {
  return epilogue.bias == nullptr && epilogue.residual == nullptr && !epilogue.gelu &&
         epilogue.factor == nullptr && !epilogue.accumulate;
}

// How a rectangle is walked. Along k it is a function of k alone: that order decides the bits.
struct Blocks {
  bool a_by_columns;  // the columns of a are contiguous, not its rows
  bool packs_b;
  bool plain;       // nothing follows the product
  bool keeps_sums;  // k has several blocks
  Cut k;
  Cut columns;         // in tiles
  Cut strips;          // rows whose sums are kept at a time
  int64_t block_rows;  // rows of a that the panels of b pass over

  Blocks(const GemmProduct& product, const GemmRectangle& rectangle)
      : a_by_columns(product.a.column != 1),
        plain(is_plain(product.epilogue)),
        k(cut(product.k, kBlockK)) {
    const int64_t rows = rectangle.row_end - rectangle.row;
    const int64_t depth = larger(1, k.longest());
    packs_b = product.b.column != 1 || product.n % kLanes != 0 || rows >= kRowsForPacking;
    keeps_sums = k.count > 1;
    columns = cut(ceil_div(rectangle.column_end - rectangle.column, kTileColumns),
                  (a_by_columns ? kBlockBFar : kBlockBNear) / (depth * kTileColumns));
    block_rows = a_by_columns ? larger(kTileRows, kBlockA / depth / kTileRows * kTileRows) : rows;
    strips = cut(rows, keeps_sums ? kBlockC / longest_columns() : rows);
  }

  int64_t longest_columns() const { return columns.longest() * kTileColumns; }
  int64_t size_of_b() const { return packs_b ? k.longest() * longest_columns() : 0; }
  int64_t size_of_sums() const {
    return keeps_sums ? strips.longest() * longest_columns() : int64_t{kTileRows} * kTileColumns;
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
  if (epilogue.gelu) {
    const GeluAndDerivative gelu =
        *epilogue.gelu == Gelu::kErf ? gelu_erf(value) : gelu_tanh(value);
    if (epilogue.gelu_derivative != nullptr) {
      store_count(epilogue.gelu_derivative + at, gelu.derivative, count);
    }
    value = gelu.value;
  }
  if (epilogue.factor != nullptr) {
    value *= load_count(epilogue.factor + at, count);
  }
  if (epilogue.accumulate) {
    value = load_count(product.c + at, count) + value;
  }
  store_count(product.c + at, value, count);
}

// A block of c against one block of k.
struct Block {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
  int64_t columns = 0;
  int64_t kb = 0;
  const float* packed_b = nullptr;
  float* sums = nullptr;  // of the block, or of one tile when none are kept
  int64_t sums_stride = 0;
};

// The tile whose first element in the block is (i, j).
void tile_product(const GemmProduct& product, const Blocks& blocks, const Block& block, int64_t i,
                  int64_t rows, int64_t j) {
  const int64_t p = blocks.k.begin(block.kb);
  const int64_t depth = blocks.k.length(block.kb);
  const int64_t columns = smaller(kTileColumns, block.columns - j);
  const int64_t vecs = ceil_div(columns, kLanes);
  const int64_t at = (block.row + i) * product.n + block.column + j;
  const bool direct = blocks.plain && columns == vecs * kLanes;
  TileArgs args;
  args.k = depth;
  args.a = product.a.data + (block.row + i) * product.a.row + p * product.a.column;
  args.a_stride = blocks.a_by_columns ? product.a.column : product.a.row;
  args.b = blocks.packs_b ? block.packed_b + j * depth
                          : product.b.data + p * product.b.row + block.column + j;
  args.b_stride = blocks.packs_b ? vecs * kLanes : product.b.row;
  args.out = direct              ? product.c + at
             : blocks.keeps_sums ? block.sums + i * block.sums_stride + j
                                 : block.sums;
  args.out_stride = direct ? product.n : block.sums_stride;
  args.add = block.kb > 0;
  tile_kernel(rows, vecs, blocks.a_by_columns)(args);
  if (direct || block.kb + 1 < blocks.k.count) {
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < columns; v += kLanes) {
      finish(product, load(args.out + r * args.out_stride + v), at + r * product.n + v,
             block.column + j + v, columns - v);
    }
  }
}

void block_product(const GemmProduct& product, const Blocks& blocks, const Block& block) {
  const Cut tiles = cut(block.rows, kTileRows);
  const int64_t panels = ceil_div(block.columns, kTileColumns);
  if (blocks.a_by_columns) {
    for (int64_t j = 0; j < panels; ++j) {
      for (int64_t t = 0; t < tiles.count; ++t) {
        tile_product(product, blocks, block, tiles.begin(t), tiles.length(t), j * kTileColumns);
      }
    }
  } else {
    for (int64_t t = 0; t < tiles.count; ++t) {
      for (int64_t j = 0; j < panels; ++j) {
        tile_product(product, blocks, block, tiles.begin(t), tiles.length(t), j * kTileColumns);
      }
    }
  }
}

// A strip of rows and columns of c against all of k. `strip.packed_b` is `packed_b`.
void strip_product(const GemmProduct& product, const Blocks& blocks, const Block& strip,
                   float* packed_b) {
  const Cut rows = cut(strip.rows, blocks.block_rows);
  for (int64_t kb = 0; kb < blocks.k.count; ++kb) {
    if (blocks.packs_b) {
      const float* const b =
          product.b.data + blocks.k.begin(kb) * product.b.row + strip.column * product.b.column;
      pack_b(packed_b, b, product.b.row, product.b.column, blocks.k.length(kb), strip.columns);
    }
    for (int64_t r = 0; r < rows.count; ++r) {
      Block block = strip;
      block.kb = kb;
      block.row += rows.begin(r);
      block.rows = rows.length(r);
      block.sums += blocks.keeps_sums ? rows.begin(r) * strip.sums_stride : 0;
      block_product(product, blocks, block);
    }
  }
}

}  // namespace

int64_t gemm_scratch_size(const GemmProduct& product, const GemmRectangle& rectangle) {
  const Blocks blocks(product, rectangle);
  return blocks.size_of_b() + blocks.size_of_sums();
}

void gemm_rectangle(const GemmProduct& product, const GemmRectangle& rectangle, float* scratch) {
  const Blocks blocks(product, rectangle);
  Block strip;
  strip.packed_b = scratch;
  strip.sums = scratch + blocks.size_of_b();
  strip.sums_stride = blocks.keeps_sums ? blocks.longest_columns() : int64_t{kTileColumns};
  for (int64_t s = 0; s < blocks.strips.count; ++s) {
    strip.row = rectangle.row + blocks.strips.begin(s);
    strip.rows = blocks.strips.length(s);
    for (int64_t j = 0; j < blocks.columns.count; ++j) {
      strip.column = rectangle.column + blocks.columns.begin(j) * kTileColumns;
      strip.columns =
          smaller(blocks.columns.length(j) * kTileColumns, rectangle.column_end - strip.column);
      strip_product(product, blocks, strip, scratch);
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
