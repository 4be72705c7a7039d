#pragma once

#include <cstdint>

#include "kernels/cpu/dispatch.h"

namespace lockstep {

/// One head of one sequence, where its first row starts.
struct AttentionHead {
  int64_t time = 0;
  int64_t head_dim = 0;
  int64_t channels = 0;  ///< rows of q, k, v are 3 * channels apart, of out channels
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
};
struct AttentionHeadForward {
  AttentionHead head;
  float* out = nullptr;
  float* lse = nullptr;
};
struct AttentionHeadBackward {
  AttentionHead head;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* delta = nullptr;
  const float* dout = nullptr;
  const float* out = nullptr;
  const float* lse = nullptr;
};

/// Keys are taken in blocks of so many, on every instruction set.
inline constexpr int64_t kKeyBlock = 64;

}  // namespace lockstep

LOCKSTEP_PER_ISA(
    /* Queries of a tile: neighbours whose scores stand in the lanes of vectors. */
    int64_t attention_forward_queries(); int64_t attention_backward_queries();
    /* Floats of scratch, aligned to 64 bytes, that the functions below need. */
    int64_t attention_scratch_size(int64_t head_dim);
    /* out and lse of the queries of one tile. */
    void attention_forward_tile(const AttentionHeadForward& args, int64_t tile, float* scratch);
    /* The share of one tile of queries in the gradients. with_dq: writes the tile's rows of delta
       and dq. with_dkv, which reads those of delta: adds to dk and dv of the keys in [first_key,
       last_key), a multiple of kKeyBlock and the next one or the end, and starts those of the
       tile's own positions. */
    void attention_backward_tile(const AttentionHeadBackward& args, int64_t tile, int64_t first_key,
                                 int64_t last_key, bool with_dq, bool with_dkv, float* scratch);
    /* One query over `keys` rows of k and v, head.channels apart; scores: (keys). */
    void attention_row(const AttentionHead& head, int64_t keys, float* out, float* scores);)
