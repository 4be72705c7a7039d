#include "kernels/cuda/attention/kind.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);

int64_t square_bytes(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.time * shape.time * kFloat;
}

}  // namespace

AttentionKind attention_kind(Precision precision, int64_t head_dim) {
  if (head_dim > kFlashHeadDim) {
    return AttentionKind::kUnfused;
  }
  return precision == Precision::kTf32 ? AttentionKind::kFlashTf32 : AttentionKind::kFlashFp32;
}

bool wgmma_takes(const AttentionShape& shape) {
  // Below, a block's few steps do not make up for what it fetches first.
  constexpr int64_t kShortest = 512;
  return shape.head_dim == kWgmmaHeadDim && shape.time >= kShortest &&
         shape.time % kWgmmaTokens == 0;
}

int64_t wgmma_forward_scratch_elements(const AttentionShape& shape) {
  return shape.batch * shape.heads * kWgmmaHeadDim * shape.time;
}

int64_t wgmma_backward_scratch_elements(const AttentionShape& shape) {
  return kWgmmaTransposedMatrices * wgmma_forward_scratch_elements(shape);
}

int64_t attention_forward_scratch_bytes(AttentionKind kind, const AttentionShape& shape) {
  if (kind == AttentionKind::kFlashTf32 && wgmma_takes(shape)) {
    return wgmma_forward_scratch_elements(shape) * kFloat;
  }
  return kind == AttentionKind::kUnfused ? square_bytes(shape) : 0;
}

int64_t attention_backward_scratch_bytes(AttentionKind kind, const AttentionShape& shape) {
  if (kind == AttentionKind::kFlashTf32 && wgmma_takes(shape)) {
    return wgmma_backward_scratch_elements(shape) * kFloat;
  }
  return kind == AttentionKind::kUnfused ? 2 * square_bytes(shape) : 0;
}

}  // namespace lockstep
