#include "kernels/attention.h"

#include <algorithm>
#include <vector>

#include "kernels/check_attention.h"
#include "kernels/cpu/attention_isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/scratch.h"

namespace lockstep {
namespace {

struct Kernels {
  decltype(&portable::attention_forward_queries) forward_queries;
  decltype(&portable::attention_backward_queries) backward_queries;
  decltype(&portable::attention_scratch_size) scratch_size;
  decltype(&portable::attention_forward_tile) forward_tile;
  decltype(&portable::attention_backward_tile) backward_tile;
  decltype(&portable::attention_row) row;
};

const Kernels& kernels() {
  static const Kernels chosen = {LOCKSTEP_SELECT_ISA(attention_forward_queries),
                                 LOCKSTEP_SELECT_ISA(attention_backward_queries),
                                 LOCKSTEP_SELECT_ISA(attention_scratch_size),
                                 LOCKSTEP_SELECT_ISA(attention_forward_tile),
                                 LOCKSTEP_SELECT_ISA(attention_backward_tile),
                                 LOCKSTEP_SELECT_ISA(attention_row)};
  return chosen;
}

int64_t channels_of(const AttentionShape& shape) {
  return shape.heads * shape.head_dim;
}

// Heads of all sequences are numbered in the order of lse: sequence by sequence.
int64_t head_count(const AttentionShape& shape) {
  return shape.batch * shape.heads;
}
int64_t qkv_offset(const AttentionShape& shape, int64_t index) {
  return index / shape.heads * shape.time * 3 * channels_of(shape) +
         index % shape.heads * shape.head_dim;
}
int64_t out_offset(const AttentionShape& shape, int64_t index) {
  return index / shape.heads * shape.time * channels_of(shape) +
         index % shape.heads * shape.head_dim;
}

AttentionHead head_of(const AttentionShape& shape, CpuView<const float> qkv, int64_t index) {
  const int64_t channels = channels_of(shape);
  const float* q = qkv.data() + qkv_offset(shape, index);
  return {.time = shape.time,
          .head_dim = shape.head_dim,
          .channels = channels,
          .q = q,
          .k = q + channels,
          .v = q + 2 * channels};
}

// Runs body(head, piece) for all `pieces` of each head, where a piece costs the more the higher (or
// the lower) its number: low and high ones are paired, so that parts cost alike.
template <class Body>
void for_pairs(CpuStream& stream, int64_t heads, int64_t pieces, const Body& body) {
  const int64_t pairs = (pieces + 1) / 2;
  parallel_for(stream.threads(), heads * pairs, [&](int64_t part) {
    const int64_t low = part % pairs;
    const int64_t high = pieces - 1 - low;
    body(part / pairs, low);
    if (high != low) {
      body(part / pairs, high);
    }
  });
}

AttentionHeadBackward head_of(const AttentionBackward<CpuDevice>& args, int64_t index) {
  const AttentionShape& shape = args.shape;
  float* dq = args.dqkv.data() + qkv_offset(shape, index);
  return {.head = head_of(shape, args.qkv, index),
          .dq = dq,
          .dk = dq + channels_of(shape),
          .dv = dq + 2 * channels_of(shape),
          .delta = args.delta.data() + index * shape.time,
          .dout = args.dout.data() + out_offset(shape, index),
          .out = args.out.data() + out_offset(shape, index),
          .lse = args.lse.data() + index * shape.time};
}

// Whether heads are too few to keep the threads busy. A part of a head is then either some queries
// or some keys, and the scores are computed for both: 7 products instead of 5. dq is summed over
// blocks of keys, dk and dv over tiles of queries, in the same order either way.
bool worth_splitting(int64_t heads, int64_t threads) {
  const int64_t rounds = (heads + threads - 1) / threads;
  return 7 * heads < 5 * rounds * threads;
}

}  // namespace

void attention_forward(CpuStream& stream, const AttentionForward<CpuDevice>& args) {
  const AttentionShape& shape = args.shape;
  check_views(args);
  const int64_t tile_queries = kernels().forward_queries();
  const int64_t tiles = (shape.time + tile_queries - 1) / tile_queries;
  const int64_t scratch_size = kernels().scratch_size(shape.head_dim);
  for_pairs(stream, head_count(shape), tiles, [&](int64_t index, int64_t tile) {
    kernels().forward_tile({.head = head_of(shape, args.qkv, index),
                            .out = args.out.data() + out_offset(shape, index),
                            .lse = args.lse.data() + index * shape.time},
                           tile, thread_scratch(scratch_size));
  });
}

void attention_backward(CpuStream& stream, const AttentionBackward<CpuDevice>& args) {
  const AttentionShape& shape = args.shape;
  const int64_t heads = head_count(shape);
  check_views(args);
  const int64_t tile_queries = kernels().backward_queries();
  const int64_t tiles = (shape.time + tile_queries - 1) / tile_queries;
  const int64_t scratch_size = kernels().scratch_size(shape.head_dim);
  if (!worth_splitting(heads, stream.threads())) {
    parallel_for(stream.threads(), heads, [&](int64_t index) {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        kernels().backward_tile(head_of(args, index), tile, 0, shape.time, true, true,
                                thread_scratch(scratch_size));
      }
    });
    return;
  }
  for_pairs(stream, heads, tiles, [&](int64_t index, int64_t tile) {
    kernels().backward_tile(head_of(args, index), tile, 0, shape.time, true, false,
                            thread_scratch(scratch_size));
  });
  const int64_t blocks = (shape.time + kKeyBlock - 1) / kKeyBlock;
  for_pairs(stream, heads, blocks, [&](int64_t index, int64_t block) {
    const int64_t first_key = block * kKeyBlock;
    for (int64_t tile = first_key / tile_queries; tile < tiles; ++tile) {
      kernels().backward_tile(head_of(args, index), tile, first_key,
                              std::min(first_key + kKeyBlock, shape.time), false, true,
                              thread_scratch(scratch_size));
    }
  });
}

void attention_decode(CpuStream& stream, const AttentionDecode<CpuDevice>& args) {
  check_views(args);
  const int64_t channels = args.heads * args.head_dim;
  const int64_t keys = args.position + 1;
  const float* qkv = args.qkv.data();
  std::copy_n(qkv + channels, channels, args.k_cache.data() + args.position * channels);
  std::copy_n(qkv + 2 * channels, channels, args.v_cache.data() + args.position * channels);
  parallel_for(stream.threads(), args.heads, [&](int64_t index) {
    const int64_t at = index * args.head_dim;
    const AttentionHead head = {.head_dim = args.head_dim,
                                .channels = channels,
                                .q = qkv + at,
                                .k = args.k_cache.data() + at,
                                .v = args.v_cache.data() + at};
    kernels().row(head, keys, args.out.data() + at, thread_scratch(keys));
  });
}

}  // namespace lockstep
