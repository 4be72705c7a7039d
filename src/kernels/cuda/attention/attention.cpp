#include "kernels/cuda/attention/attention.h"

#include <limits>

#include "core/base/error.h"
#include "kernels/check_attention.h"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

void check_shape(const AttentionShape& shape) {
  LOCKSTEP_CHECK(shape.head_dim <= kMaxHeadDim, "heads of {} elements; at most {}", shape.head_dim,
                 kMaxHeadDim);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  LOCKSTEP_CHECK(shape.batch * shape.heads <= most && shape.time <= (int64_t{1} << 20),
                 "{} sequences of {} positions, {} heads", shape.batch, shape.time, shape.heads);
}

bool empty(const AttentionShape& shape) {
  return shape.batch == 0 || shape.time == 0 || shape.heads == 0 || shape.head_dim == 0;
}

void check_kind(AttentionKind kind, const AttentionShape& shape) {
  LOCKSTEP_CHECK(kind == AttentionKind::kUnfused || shape.head_dim <= kFlashHeadDim,
                 "heads of {} elements; the flash kernels take {}", shape.head_dim, kFlashHeadDim);
}

}  // namespace

void attention_forward(CudaStream& stream, AttentionKind kind,
                       const AttentionForward<CudaDevice>& args) {
  check_views(args);
  check_shape(args.shape);
  check_kind(kind, args.shape);
  if (empty(args.shape)) {
    return;
  }
  switch (kind) {
    case AttentionKind::kUnfused:
      return cuda::unfused_forward(stream, args);
    case AttentionKind::kFlashFp32:
      return cuda::flash_fp32_forward(stream, args);
    case AttentionKind::kFlashTf32:
      return cuda::flash_tf32_forward(stream, args);
  }
}

void attention_backward(CudaStream& stream, AttentionKind kind,
                        const AttentionBackward<CudaDevice>& args) {
  check_views(args);
  check_shape(args.shape);
  check_kind(kind, args.shape);
  if (empty(args.shape)) {
    return;
  }
  switch (kind) {
    case AttentionKind::kUnfused:
      return cuda::unfused_backward(stream, args);
    case AttentionKind::kFlashFp32:
      return cuda::flash_fp32_backward(stream, args);
    case AttentionKind::kFlashTf32:
      return cuda::flash_tf32_backward(stream, args);
  }
}

void attention_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  attention_forward(stream, attention_kind(stream.precision(), args.shape.head_dim), args);
}

void attention_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  attention_backward(stream, attention_kind(stream.precision(), args.shape.head_dim), args);
}

void attention_decode(CudaStream& stream, const AttentionDecode<CudaDevice>& args) {
  check_views(args);
  LOCKSTEP_CHECK(args.head_dim <= kMaxHeadDim, "heads of {} elements; at most {}", args.head_dim,
                 kMaxHeadDim);
  if (args.heads * args.head_dim > 0) {
    cuda::decode(stream, args);
  }
}

}  // namespace lockstep
