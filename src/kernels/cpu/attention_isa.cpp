#include "kernels/cpu/attention_isa.h"

#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/simd_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// The running softmax of a tile's queries (Milakov and Gimelshein, 2018): largest product q·k so
// far and sum of the exponentials of what others lie below it, scaled.
struct OnlineSoftmax {
  float scale;
  FloatVec max[kTileVecs];
  FloatVec sum[kTileVecs];

  explicit OnlineSoftmax(float scale_of_scores) : scale(scale_of_scores) {
    for (int v = 0; v < kTileVecs; ++v) {
      max[v] = broadcast(-__builtin_inff());
      sum[v] = FloatVec{};
    }
  }

  // Takes a block of products (keys, tile) and leaves the exponentials in their place; returns, for
  // vector v, the factor of what was summed before.
  FloatVec take(int v, int64_t keys, int64_t width, float* scores) {
    FloatVec block_max = max[v];
    for (int64_t j = 0; j < keys; ++j) {
      block_max = maximum(load(scores + j * width), block_max);
    }
    FloatVec block_sum = {};
    for (int64_t j = 0; j < keys; ++j) {
      const FloatVec p = exponential((load(scores + j * width) - block_max) * scale);
      store(scores + j * width, p);
      block_sum += p;
    }
    const FloatVec correction = exponential((max[v] - block_max) * scale);
    max[v] = block_max;
    sum[v] = multiply_add(sum[v], correction, block_sum);
    return correction;
  }
};

}  // namespace

int64_t attention_forward_queries() {
  return kForwardQueries;
}
int64_t attention_backward_queries() {
  return kBackwardQueries;
}

int64_t attention_scratch_size(int64_t head_dim) {
  return BackwardScratch(head_dim, nullptr).size;
}

void attention_forward_tile(const AttentionHeadForward& args, int64_t index, float* scratch) {
  const AttentionHead& head = args.head;
  const int64_t stride = 3 * head.channels;
  const QueryTile tile(head, index, kForwardQueries);
  const ForwardScratch at(head.head_dim, scratch);
  pack_queries(at.queries, head, tile);
  OnlineSoftmax softmax(scale_of(head));
  for (int64_t key = 0; key < tile.end(); key += kKeyBlock) {
    const int64_t left = tile.end() - key;
    const int64_t keys = left < kKeyBlock ? left : kKeyBlock;
    product(keys, head.head_dim, rows_of(head.k + key * stride, stride), {at.queries, tile.width},
            tile.vecs, {at.scores, tile.width, false});
    mask_future(at.scores, tile, key, keys, -__builtin_inff());
    for (int v = 0; v < tile.vecs; ++v) {
      const FloatVec correction = softmax.take(v, keys, tile.width, at.scores + v * kLanes);
      if (key > 0) {
        scale_column(at.sums + v * kLanes, head.head_dim, tile.width, correction);
      }
    }
    product(head.head_dim, keys, columns_of(head.v + key * stride, stride), {at.scores, tile.width},
            tile.vecs, {at.sums, tile.width, key > 0});
  }
  float log_sum[kForwardQueries];
  for (int v = 0; v < tile.vecs; ++v) {
    scale_column(at.sums + v * kLanes, head.head_dim, tile.width, broadcast(1.0F) / softmax.sum[v]);
    store(log_sum + v * kLanes, softmax.max[v] * softmax.scale);
    for (int lane = 0; lane < kLanes; ++lane) {
      log_sum[v * kLanes + lane] += __builtin_logf(softmax.sum[v][lane]);
    }
  }
  store_transposed(args.out + tile.begin * head.channels, head.channels, at.sums, tile,
                   head.head_dim, at.transposed);
  for (int64_t i = 0; i < tile.count; ++i) {
    args.lse[tile.begin + i] = log_sum[i];
  }
}

void attention_row(const AttentionHead& head, int64_t keys, float* out, float* scores) {
  const float scale = scale_of(head);
  float max = -__builtin_inff();
  for (int64_t j = 0; j < keys; ++j) {
    scores[j] = scale * dot(head.head_dim, head.q, head.k + j * head.channels);
    max = scores[j] > max ? scores[j] : max;
  }
  float sum = 0;
  for (int64_t j = 0; j < keys; j += kLanes) {
    const int64_t count = keys - j < kLanes ? keys - j : int64_t{kLanes};
    const FloatVec p = exponential(load_first(scores + j, count) - max);
    store_first(scores + j, p, count);
    for (int64_t i = j; i < j + count; ++i) {
      sum += scores[i];
    }
  }
  const float share = 1.0F / sum;
  for (int64_t d = 0; d < head.head_dim; d += kLanes) {
    const int64_t left = head.head_dim - d;
    const int64_t count = left < kLanes ? left : int64_t{kLanes};
    FloatVec total = {};
    for (int64_t j = 0; j < keys; ++j) {
      total = multiply_add(broadcast(scores[j]), load_first(head.v + j * head.channels + d, count),
                           total);
    }
    store_first(out + d, total * share, count);
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
