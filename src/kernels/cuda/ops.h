#pragma once

// Every op on the GPU: the same contracts as on the CPU, enqueued in stream order. Products and
// attention follow the stream's precision. No result depends on anything but the arguments and the
// GPU's model: two runs give the same bits. Nothing here allocates but a stream's scratch memory,
// so that what ran once can be captured into a graph.

#include "core/device/cuda_device.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/fingerprint.h"
#include "kernels/gemm.h"
#include "kernels/layernorm.h"
#include "kernels/reduce.h"
#include "kernels/segment_norms.h"
#include "kernels/weight_gradient.h"

namespace lockstep {

void gemm(CudaStream& stream, const Gemm<CudaDevice>& problem);
void weight_gradient(CudaStream& stream, const WeightGradient<CudaDevice>& args);

void attention_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args);
void attention_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args);
void attention_decode(CudaStream& stream, const AttentionDecode<CudaDevice>& args);

void layernorm_forward(CudaStream& stream, const LayerNormForward<CudaDevice>& args);
void layernorm_backward(CudaStream& stream, const LayerNormBackward<CudaDevice>& args);

void embedding_forward(CudaStream& stream, const EmbeddingForward<CudaDevice>& args);
void embedding_backward(CudaStream& stream, const EmbeddingBackward<CudaDevice>& args);

void cross_entropy(CudaStream& stream, const CrossEntropy<CudaDevice>& args);

void column_sum(CudaStream& stream, const ColumnSum<CudaDevice>& args);
void squared_norm(CudaStream& stream, const SquaredNorm<CudaDevice>& args);
void segment_norms(CudaStream& stream, const SegmentNorms<CudaDevice>& args);
void norm_of_segments(CudaStream& stream, const NormOfSegments<CudaDevice>& args);
void sum(CudaStream& stream, const Sum<CudaDevice>& args);
void add_into(CudaStream& stream, CudaView<float> to, CudaView<const float> from);

void fingerprint(CudaStream& stream, const Fingerprint<CudaDevice>& args);

void clip_scale(CudaStream& stream, const ClipScale<CudaDevice>& args);
void adamw(CudaStream& stream, const AdamW<CudaDevice>& args);

}  // namespace lockstep
