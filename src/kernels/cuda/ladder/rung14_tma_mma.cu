// Rung 14, the tensor memory accelerator: rung 11's products, of tiles that no thread copies.
//
// What rung 11 spends beside its products is twelve copies a thread and tile, with their addresses
// and predicates, and an instruction for each fragment register to round it. Here one thread names
// a box of the matrix, and the accelerator brings it: swizzled, zero outside of the matrix, and
// rounded to TF32 on its way. A stage has two barriers in shared memory. The accelerator's bytes
// complete the one that says full; every warp arrives at the one that says empty once it has the
// stage's last fragments. So nothing makes the warps of a block walk in step, where rung 11 has a
// barrier for all of them in each tile. Which warp asks for tiles goes round among them.
//
// The swizzle is the accelerator's, by the row's number alone, so that fragments take other rows
// than rung 11's (kernels/layout/boxed_tile.h): each load still is free of bank conflicts, and now
// lands in the registers of an instruction as it is. An instruction wants two neighbouring rows of
// its left operand side by side, as an MN-major tile has them, but two k of its right one, as a
// K-major tile has them. So of a product whose A is K-major and whose B is not, the transpose is
// computed. C leaves in pairs of neighbours.
//
// Warp tiles are rung 11's, 64 x 64: 16 FLOP for each byte that is read of shared memory, and 43
// for each byte of a tile. It needs compute capability 9.0 and rows that start at multiples of 16
// bytes. What is not so is left to rung 11, which needs neither.

#include <type_traits>

#include "core/base/ceil_div.h"
#include "kernels/cuda/allow_shared.cuh"
#include "kernels/cuda/gemm/majors.h"
#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/cuda/gemm/output.cuh"
#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/shared.cuh"
#include "kernels/cuda/tma/pipeline.cuh"
#include "kernels/cuda/tma/tensor_map.cuh"
#include "kernels/layout/boxed_tile.h"
#include "kernels/layout/tile_shape.h"

namespace lockstep {
namespace {

using namespace cuda;
using layout::Side;

using Shape = layout::TmaMmaTile256x128;
using Pipeline = StagePipeline<Shape>;
static_assert(Shape::kDepth == layout::kWarpgroupDepth, "which boxes and the pipeline have");
constexpr int kSteps = Shape::kDepth / 8;

struct TmaOperands {
  CUtensorMap a;  ///< (m, k), a box a tile; or (k, m), boxes of 32 x a panel's rows
  CUtensorMap b;  ///< likewise of n
  int k;
};

/// A warp's 64 x 8 of the left operand: four fragments of sixteen rows.
template <Major kMajor>
struct LeftFragments {
  static constexpr Side kSide = Side::kA;
  uint32_t values[4][4];

  static __device__ uint32_t origin(int e0) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return 4 * (kMajor == Major::kK ? layout::boxed_matrix_origin<kSide>(lane, e0)
                                    : layout::boxed_pair_origin(lane, e0));
  }

  /// The fragment `part`, from k0 on.
  __device__ void load(uint32_t at, int k0, int part) {
    if constexpr (kMajor == Major::kK) {
      load_matrices(values[part], layout::boxed_matrix_offset<4>(at, k0, 2 * part));
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint2 rows = load_shared8(layout::boxed_pair_offset<4>(at, k0, half, part));
        values[part][2 * half] = rows.x;
        values[part][2 * half + 1] = rows.y;
      }
    }
  }
};

/// A warp's 64 x 8 of the right operand: four times two fragments of eight columns.
template <Major kMajor>
struct RightFragments {
  static constexpr Side kSide = Side::kB;
  uint32_t values[4][4];

  static __device__ uint32_t origin(int e0) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return 4 * (kMajor == Major::kK ? layout::boxed_matrix_origin<kSide>(lane, e0)
                                    : layout::boxed_single_origin(lane, e0));
  }

  /// The fragments 2 part and 2 part + 1, from k0 on.
  __device__ void load(uint32_t at, int k0, int part) {
    if constexpr (kMajor == Major::kK) {
      load_matrices(values[part], layout::boxed_matrix_offset<4>(at, k0, 2 * part));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        values[part][i] =
            load_shared4(layout::boxed_single_offset<4>(at, k0, i % 2, 2 * part + i / 2));
      }
    }
  }

  __device__ uint2 column(int j) const {
    return make_uint2(values[j / 2][j % 2 * 2], values[j / 2][j % 2 * 2 + 1]);
  }
};

/// A warp's sums, and the fragments of the step that is multiplied and of the next one.
template <Major kLeft, Major kRight>
class WarpTile {
 public:
  /// Its part of the operands' tiles starts at these rows.
  __device__ WarpTile(int left_e0, int right_e0)
      : left_origin_(LeftFragments<kLeft>::origin(left_e0)),
        right_origin_(RightFragments<kRight>::origin(right_e0)) {}

  /// Turns to these tiles.
  __device__ void begin(uint32_t left_tile, uint32_t right_tile) {
    left_at_ = left_tile + left_origin_;
    right_at_ = right_tile + right_origin_;
  }

  __device__ void load(int step) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      right_[step % 2].load(right_at_, step * 8, part);
      left_[step % 2].load(left_at_, step * 8, part);
    }
  }

  /// Multiplies the fragments of a step, and loads those of `next` among the products.
  __device__ void multiply(int step, int next) {
    const LeftFragments<kLeft>& left = left_[step % 2];
    const RightFragments<kRight>& right = right_[step % 2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      right_[next % 2].load(right_at_, next * 8, i);
      left_[next % 2].load(left_at_, next * 8, i);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        mma_tf32(sum_[i][j], left.values[i], right.column(j));
      }
    }
  }

  /// Calls visit(row, column, pair) for each two sums whose columns are neighbours: rows are of the
  /// left operand, but where `kSwapped` of the right one.
  template <bool kSwapped, class Visit>
  __device__ void for_each2(Visit visit) const {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&d)[4] = sum_[i][j];
          if constexpr (kSwapped) {
            visit(layout::boxed_extent<Side::kB, kRight>(j, 2 * t + odd),
                  layout::boxed_extent<Side::kA, kLeft>(i, g), make_float2(d[odd], d[2 + odd]));
          } else {
            visit(layout::boxed_extent<Side::kA, kLeft>(i, g + 8 * odd),
                  layout::boxed_extent<Side::kB, kRight>(j, 2 * t),
                  make_float2(d[2 * odd], d[2 * odd + 1]));
          }
        }
      }
    }
  }

 private:
  float sum_[4][8][4] = {};
  uint32_t left_origin_;
  uint32_t right_origin_;
  uint32_t left_at_;
  uint32_t right_at_;
  LeftFragments<kLeft> left_[2];
  RightFragments<kRight> right_[2];
};

/// Has the tile at (e0, d0) of an operand brought. By one thread.
template <Major kMajor, int kExtent>
__device__ void copy_tile(uint32_t to, const CUtensorMap* map, int e0, int d0, uint32_t barrier) {
  if constexpr (kMajor == Major::kK) {
    copy_box(to, map, d0, e0, barrier);
  } else {
#pragma unroll
    for (int row = 0; row < kExtent; row += layout::kPanelRows) {
      copy_box(to + row * layout::kWarpgroupDepth * 4, map, e0 + row, d0, barrier);
    }
  }
}

/// Block x computes a tile of c.
template <Major kA, Major kB>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResident)
    tma_mma_kernel(const __grid_constant__ TmaOperands operands, Output out) {
  constexpr bool kSwapped = kA == Major::kK && kB == Major::kMN;
  constexpr int kAhead = Shape::kStages - 1;
  extern __shared__ __align__(1024) float shared[];
  __shared__ __align__(8) uint64_t barriers[Pipeline::kBarriers];
  const Pipeline pipeline = {shared_address(shared),
                             static_cast<uint32_t>(__cvta_generic_to_shared(barriers))};
  const auto [tile_m, tile_n] = layout::tile_of_block(
      static_cast<int>(blockIdx.x), (out.m + Shape::kBlockM - 1) / Shape::kBlockM,
      (out.n + Shape::kBlockN - 1) / Shape::kBlockN);
  const int m0 = tile_m * Shape::kBlockM;
  const int n0 = tile_n * Shape::kBlockN;
  const int tiles = (operands.k + Shape::kDepth - 1) / Shape::kDepth;
  const int warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 32, 0);
  const int warp_m = warp / Shape::kWarpsN * Shape::kWarpM;
  const int warp_n = warp % Shape::kWarpsN * Shape::kWarpN;

  const auto supply = [&](int stage, int tile) {
    const uint32_t full = pipeline.full(stage);
    arrive_expecting(full, Pipeline::kABytes + Pipeline::kBBytes);
    copy_tile<kA, Shape::kBlockM>(pipeline.a_tile(stage), &operands.a, m0, tile * Shape::kDepth,
                                  full);
    copy_tile<kB, Shape::kBlockN>(pipeline.b_tile(stage), &operands.b, n0, tile * Shape::kDepth,
                                  full);
  };
  if (threadIdx.x == 0) {
    prefetch_map(&operands.a);
    prefetch_map(&operands.b);
    pipeline.init();
    for (int tile = 0; tile < min(kAhead, tiles); ++tile) {
      supply(tile, tile);
    }
  }
  __syncthreads();

  using Work = std::conditional_t<kSwapped, WarpTile<kB, kA>, WarpTile<kA, kB>>;
  Work work(kSwapped ? warp_n : warp_m, kSwapped ? warp_m : warp_n);
  const auto turn_to = [&](int stage) {
    const uint32_t a = pipeline.a_tile(stage);
    const uint32_t b = pipeline.b_tile(stage);
    work.begin(kSwapped ? b : a, kSwapped ? a : b);
  };
  Pipeline::Cursor at;
  Pipeline::Cursor ahead = {kAhead};
  pipeline.wait_full(at);
  turn_to(at.stage);
  work.load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = at.stage;
    at.advance();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 == kSteps) {
        if (tile + 1 < tiles) {
          pipeline.wait_full(at);
        }
        turn_to(at.stage);  // behind the last tile, what is loaded is not used
      }
      work.multiply(step, (step + 1) % kSteps);
      // The stage that the tile before was in, which all warps have left, or will before long.
      if (step == 1 && tile + kAhead < tiles && warp == tile % Shape::kReadingWarps) {
        if (elected()) {
          pipeline.wait_empty(ahead);
          supply(ahead.stage, tile + kAhead);
        }
        __syncwarp();
      }
    }
    ahead.advance();
    __syncwarp();
    pipeline.release(stage);
  }
  work.template for_each2<kSwapped>([&](int row, int column, float2 pair) {
    out.store2(m0 + warp_m + row, n0 + warp_n + column, pair);
  });
}

struct TmaMma {
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int kSharedBytes = Shape::kSharedBytes;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &tma_mma_kernel<kA, kB>;
  }
};

template <Major kMajor>
CUtensorMap map_of(const Operand<kMajor>& operand, int tile_extent) {
  return kMajor == Major::kK
             ? tensor_map({operand.data, operand.extent, operand.depth, operand.depth}, tile_extent,
                          TensorElements::kRoundedToTf32)
             : tensor_map({operand.data, operand.depth, operand.extent, operand.extent},
                          Shape::kDepth, TensorElements::kRoundedToTf32);
}

void launch(CudaStream& stream, const Gemm<CudaDevice>& problem) {
  launch_with_operands(problem, [&]<Major kA, Major kB>(const Operand<kA>& a,
                                                        const Operand<kB>& b) {
    const bool mapped = a.vectorized && b.vectorized && problem.k > 0;
    if (!mapped || stream.facts().compute_capability != 90) {
      rung_multistage_mma().launch(stream, problem);
      return;
    }
    auto* kernel = TmaMma::entry<kA, kB>(true);
    allow_shared(kernel, TmaMma::kSharedBytes);
    const TmaOperands operands = {map_of(a, Shape::kBlockM), map_of(b, Shape::kBlockN), a.depth};
    const int64_t blocks =
        ceil_div(problem.m, Shape::kBlockM) * ceil_div(problem.n, Shape::kBlockN);
    kernel<<<static_cast<unsigned>(blocks), TmaMma::kThreads, TmaMma::kSharedBytes,
             stream.handle()>>>(operands,
                                make_output(problem.c.data(), problem.m, problem.n, problem.k));
    check_cuda(cudaGetLastError(), "launching a matrix product");
  });
}

}  // namespace

Rung rung_tma_mma() {
  return {.number = 14,
          .name = "TMA mma",
          .idea = "sm_90: tiles copied and rounded by the tensor memory accelerator",
          .precision = Precision::kTf32,
          .launch = &launch,
          .resources = &rung_resources<TmaMma>,
          .compute_capability = 90};
}

}  // namespace lockstep
