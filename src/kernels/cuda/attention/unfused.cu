// Attention as its formula is written: scores, softmax, product, each a kernel of its own, with the
// T x T matrices in scratch memory. What the flash kernels are measured against and checked with,
// and what serves the largest heads. Always in fp32.

#include <cuda_runtime.h>

#include <cmath>

#include "core/device/cuda_error.h"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// One matrix for each head, by strides: element (row, column) of head h of sequence b is
// data[b * sequence + h * head + row * row_stride + column * column_stride].
template <class T>
struct Matrices {
  T* data;
  int64_t sequence;
  int64_t head;
  int64_t row_stride;
  int64_t column_stride;

  __device__ T* of(int index, int heads) const {
    return data + index / heads * sequence + index % heads * head;
  }
  Matrices transposed() const { return {data, sequence, head, column_stride, row_stride}; }
};

// What the causal mask makes of a product: only tiles of the result that touch the lower triangle
// are wanted, or the left matrix is lower or upper triangular by tiles.
enum class Causal { kLowerResult, kLowerLeft, kUpperLeft };

struct Product {
  Matrices<const float> a;
  Matrices<const float> b;
  Matrices<float> c;
  int m;
  int n;
  int k;
  int heads;
  float scale;
};

// A tile [depth][extent] of a matrix given by its strides, zeros outside of it. Neighbouring
// threads take neighbours in memory.
__device__ void load_tile(float (&tile)[kDepth][kTile + 4], const float* from,
                          int64_t extent_stride, int64_t depth_stride, int extent, int depth,
                          int e0, int d0) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kThreads) {
    const int e = depth_stride == 1 ? i / kDepth : i % kTile;
    const int d = depth_stride == 1 ? i % kDepth : i / kTile;
    const bool inside = e0 + e < extent && d0 + d < depth;
    tile[d][e] = inside ? from[(e0 + e) * extent_stride + (d0 + d) * depth_stride] : 0.0F;
  }
}

template <Causal kCausal>
__global__ void __launch_bounds__(kThreads) product_kernel(Product p) {
  __shared__ float a_tile[kDepth][kTile + 4];
  __shared__ float b_tile[kDepth][kTile + 4];
  const int head = static_cast<int>(blockIdx.x);
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.z) * kTile;
  if (kCausal == Causal::kLowerResult && n0 > m0) {
    return;
  }
  const int first = kCausal == Causal::kUpperLeft ? m0 : 0;
  const int last = kCausal == Causal::kLowerLeft ? min(m0 + kTile, p.k) : p.k;
  const float* a = p.a.of(head, p.heads);
  const float* b = p.b.of(head, p.heads);
  const int row = static_cast<int>(threadIdx.x) / 16 * 4;
  const int column = static_cast<int>(threadIdx.x) % 16 * 4;
  float sum[4][4] = {};
  for (int k0 = first; k0 < last; k0 += kDepth) {
    load_tile(a_tile, a, p.a.row_stride, p.a.column_stride, p.m, p.k, m0, k0);
    load_tile(b_tile, b, p.b.column_stride, p.b.row_stride, p.n, p.k, n0, k0);
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sum[i][j] = fmaf(a_tile[k][row + i], b_tile[k][column + j], sum[i][j]);
        }
      }
    }
    __syncthreads();
  }
  float* c = p.c.of(head, p.heads);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      if (m0 + row + i < p.m && n0 + column + j < p.n) {
        c[(m0 + row + i) * p.c.row_stride + (n0 + column + j) * p.c.column_stride] =
            sum[i][j] * p.scale;
      }
    }
  }
}

__device__ float warp_max(float value) {
  for (int mask = 16; mask > 0; mask /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, mask));
  }
  return value;
}

// The row that a warp has, counted over all heads; row * T is where it starts in the scores.
__device__ int64_t row_of_warp() {
  return static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}

// Columns that the products read: those of the tiles that touch the row's lower triangle.
__device__ int columns_read(int position, int time) {
  return min((position / kTile + 1) * kTile, time);
}

__global__ void __launch_bounds__(kThreads)
    softmax_kernel(float* scores, float* lse, int64_t rows, int time) {
  const int64_t row = row_of_warp();
  if (row >= rows) {
    return;
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto position = static_cast<int>(row % time);
  float* s = scores + row * time;
  float max = -INFINITY;
  for (int j = lane; j <= position; j += 32) {
    max = fmaxf(max, s[j]);
  }
  max = warp_max(max);
  float sum = 0;
  for (int j = lane; j <= position; j += 32) {
    sum += expf(s[j] - max);
  }
  sum = warp_sum(sum);
  for (int j = lane; j < columns_read(position, time); j += 32) {
    s[j] = j <= position ? expf(s[j] - max) / sum : 0.0F;
  }
  if (lane == 0) {
    lse[row] = max + logf(sum);
  }
}

// Scores become probabilities, dp becomes the gradient of the scores before their scale.
__global__ void __launch_bounds__(kThreads)
    softmax_backward_kernel(float* scores, float* dp, float* delta, const float* lse,
                            const float* dout, const float* out, Heads heads) {
  const int64_t row = row_of_warp();
  if (row >= static_cast<int64_t>(heads.count) * heads.time) {
    return;
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto position = static_cast<int>(row % heads.time);
  const int64_t at = heads.offset(static_cast<int>(row / heads.time)) + position * heads.stride();
  float sum = 0;
  for (int d = lane; d < heads.head_dim; d += 32) {
    sum = fmaf(dout[at + d], out[at + d], sum);
  }
  sum = warp_sum(sum);
  float* s = scores + row * heads.time;
  float* ds = dp + row * heads.time;
  for (int j = lane; j < columns_read(position, heads.time); j += 32) {
    const float p = j <= position ? expf(s[j] - lse[row]) : 0.0F;
    s[j] = p;
    ds[j] = j <= position ? p * (ds[j] - sum) : 0.0F;
  }
  if (lane == 0) {
    delta[row] = sum;
  }
}

template <Causal kCausal>
void product(CudaStream& stream, int count, const Product& p) {
  const auto tiles = [](int size) { return static_cast<unsigned>((size + kTile - 1) / kTile); };
  product_kernel<kCausal><<<dim3(static_cast<unsigned>(count), tiles(p.m), tiles(p.n)), kThreads, 0,
                            stream.handle()>>>(p);
  check_cuda(cudaGetLastError(), "launching a product of unfused attention");
}

unsigned row_blocks(const Heads& heads) {
  return static_cast<unsigned>((static_cast<int64_t>(heads.count) * heads.time + kWarps - 1) /
                               kWarps);
}

// The matrices of all heads in their tensors.
struct HeadMatrices {
  Heads heads;
  float scale;

  explicit HeadMatrices(const AttentionShape& shape)
      : heads(heads_of(shape)), scale(score_scale(shape.head_dim)) {}

  template <class T>
  Matrices<T> packed(T* data, int part) const {  // q, k or v, (T, D)
    return {data + part * heads.channels(), heads.time * heads.packed_stride(), heads.head_dim,
            heads.packed_stride(), 1};
  }
  template <class T>
  Matrices<T> plain(T* data) const {  // (T, D)
    return {data, heads.time * heads.stride(), heads.head_dim, heads.stride(), 1};
  }
  template <class T>
  Matrices<T> square(T* data) const {  // (T, T)
    const int64_t size = static_cast<int64_t>(heads.time) * heads.time;
    return {data, heads.per_sequence * size, size, heads.time, 1};
  }
  // (T, T) = a · bᵀ over a head's elements.
  Product scores(Matrices<const float> a, Matrices<const float> b, float* to, float factor) const {
    return {a,          b.transposed(), square(to),         heads.time,
            heads.time, heads.head_dim, heads.per_sequence, factor};
  }
  // (T, D) = a · b over positions.
  Product sums(Matrices<const float> a, Matrices<const float> b, Matrices<float> to,
               float factor) const {
    return {a, b, to, heads.time, heads.head_dim, heads.time, heads.per_sequence, factor};
  }
};

}  // namespace

void unfused_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  const HeadMatrices matrices(args.shape);
  const Heads& heads = matrices.heads;
  const int64_t rows = static_cast<int64_t>(heads.count) * heads.time;
  float* scores = stream.scratch<float>(rows * heads.time).data();
  const float* qkv = args.qkv.data();
  product<Causal::kLowerResult>(
      stream, heads.count,
      matrices.scores(matrices.packed(qkv, 0), matrices.packed(qkv, 1), scores, matrices.scale));
  softmax_kernel<<<row_blocks(heads), kThreads, 0, stream.handle()>>>(scores, args.lse.data(), rows,
                                                                      heads.time);
  check_cuda(cudaGetLastError(), "launching the softmax of unfused attention");
  product<Causal::kLowerLeft>(
      stream, heads.count,
      matrices.sums(matrices.square<const float>(scores), matrices.packed(qkv, 2),
                    matrices.plain(args.out.data()), 1.0F));
}

void unfused_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  const HeadMatrices matrices(args.shape);
  const Heads& heads = matrices.heads;
  const int64_t square = static_cast<int64_t>(heads.count) * heads.time * heads.time;
  float* scores = stream.scratch<float>(2 * square).data();
  float* dscores = scores + square;
  const float* qkv = args.qkv.data();
  float* dqkv = args.dqkv.data();
  const Matrices<const float> dout = matrices.plain(args.dout.data());
  product<Causal::kLowerResult>(
      stream, heads.count,
      matrices.scores(matrices.packed(qkv, 0), matrices.packed(qkv, 1), scores, matrices.scale));
  product<Causal::kLowerResult>(stream, heads.count,
                                matrices.scores(dout, matrices.packed(qkv, 2), dscores, 1.0F));
  softmax_backward_kernel<<<row_blocks(heads), kThreads, 0, stream.handle()>>>(
      scores, dscores, args.delta.data(), args.lse.data(), args.dout.data(), args.out.data(),
      heads);
  check_cuda(cudaGetLastError(), "launching the softmax's gradient of unfused attention");
  const Matrices<const float> p = matrices.square<const float>(scores);
  const Matrices<const float> ds = matrices.square<const float>(dscores);
  product<Causal::kUpperLeft>(stream, heads.count,
                              matrices.sums(p.transposed(), dout, matrices.packed(dqkv, 2), 1.0F));
  product<Causal::kLowerLeft>(
      stream, heads.count,
      matrices.sums(ds, matrices.packed(qkv, 1), matrices.packed(dqkv, 0), matrices.scale));
  product<Causal::kUpperLeft>(stream, heads.count,
                              matrices.sums(ds.transposed(), matrices.packed(qkv, 0),
                                            matrices.packed(dqkv, 1), matrices.scale));
}

}  // namespace lockstep::cuda
