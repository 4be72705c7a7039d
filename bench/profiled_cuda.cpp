#include "profiled_cuda.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

/// The same memory as a view of the device that the ops are written for.
template <class T>
CudaView<T> plain(View<ProfiledCuda, T> view) {
  return {view.data(), view.size()};
}

OpCost floats(int64_t count) {
  return {.bytes = 4.0 * static_cast<double>(count)};
}

std::string gemm_name(const Gemm<ProfiledCuda>& args) {
  std::string name =
      fmt::format("gemm {}{} {}x{}x{}", args.trans_a == Transpose::kYes ? 'T' : 'N',
                  args.trans_b == Transpose::kYes ? 'T' : 'N', args.m, args.n, args.k);
  name += args.bias.empty() ? "" : " +bias";
  name += args.residual.empty() ? "" : " +residual";
  name += args.gelu ? " +gelu" : "";
  name += args.factor.empty() ? "" : " *factor";
  return name;
}

OpCost gemm_cost(const Gemm<ProfiledCuda>& args) {
  const int64_t out = args.m * args.n;
  OpCost cost = floats(args.m * args.k + args.k * args.n + out);
  cost.flops = 2.0 * static_cast<double>(out) * static_cast<double>(args.k);
  return cost;
}

/// Two products forward, causal: half of the square.
double attention_flops(const AttentionShape& shape) {
  return 2.0 * static_cast<double>(shape.batch * shape.heads * shape.head_dim) *
         static_cast<double>(shape.time) * static_cast<double>(shape.time + 1);
}

int64_t attention_size(const AttentionShape& shape) {
  return shape.batch * shape.time * shape.heads * shape.head_dim;
}

}  // namespace

void ProfiledStream::timed(std::string name, OpCost cost,
                           const std::function<void(CudaStream&)>& op) {
  Sample& sample = samples_.emplace_back();
  sample.name = std::move(name);
  sample.cost = cost;
  sample.start.mark(*stream_);
  op(*stream_);
  sample.stop.mark(*stream_);
}

std::map<std::string, ProfiledStream::Total> ProfiledStream::totals() {
  std::map<std::string, Total> totals;
  for (Sample& sample : samples_) {
    Total& total = totals[sample.name];
    ++total.calls;
    total.seconds += sample.stop.seconds_since(sample.start);
    total.cost.flops += sample.cost.flops;
    total.cost.bytes += sample.cost.bytes;
  }
  return totals;
}

void set_zero(ProfiledStream& stream, View<ProfiledCuda, float> view) {
  stream.timed("set_zero", floats(view.size()),
               [&](CudaStream& cuda) { set_zero(cuda, plain(view)); });
}

void gemm(ProfiledStream& stream, const Gemm<ProfiledCuda>& args) {
  stream.timed(gemm_name(args), gemm_cost(args), [&](CudaStream& cuda) {
    gemm(cuda, Gemm<CudaDevice>{.m = args.m,
                                .n = args.n,
                                .k = args.k,
                                .trans_a = args.trans_a,
                                .trans_b = args.trans_b,
                                .a = plain(args.a),
                                .b = plain(args.b),
                                .c = plain(args.c),
                                .accumulate = args.accumulate,
                                .bias = plain(args.bias),
                                .residual = plain(args.residual),
                                .gelu = args.gelu,
                                .gelu_derivative = plain(args.gelu_derivative),
                                .factor = plain(args.factor)});
  });
}

void weight_gradient(ProfiledStream& stream, const WeightGradient<ProfiledCuda>& args) {
  OpCost cost = floats(args.rows * (args.in + args.out) + args.in * args.out);
  cost.flops = 2.0 * static_cast<double>(args.rows * args.in) * static_cast<double>(args.out);
  std::optional<NormedRows<CudaDevice>> norm;
  if (args.norm) {
    norm = {plain(args.norm->mean), plain(args.norm->rstd), plain(args.norm->gamma),
            plain(args.norm->beta), plain(args.norm->memory)};
  }
  stream.timed(fmt::format("weight gradient {}x{}x{}{}", args.out, args.in, args.rows,
                           args.norm ? " of a norm" : ""),
               cost, [&](CudaStream& cuda) {
                 weight_gradient(cuda, WeightGradient<CudaDevice>{.rows = args.rows,
                                                                  .in = args.in,
                                                                  .out = args.out,
                                                                  .weight = plain(args.weight),
                                                                  .bias = plain(args.bias),
                                                                  .dy = plain(args.dy),
                                                                  .x = plain(args.x),
                                                                  .norm = norm,
                                                                  .accumulate = args.accumulate});
               });
}

void attention_forward(ProfiledStream& stream, const AttentionForward<ProfiledCuda>& args) {
  OpCost cost = floats(4 * attention_size(args.shape));
  cost.flops = attention_flops(args.shape);
  stream.timed("attention forward", cost, [&](CudaStream& cuda) {
    attention_forward(cuda, AttentionForward<CudaDevice>{.shape = args.shape,
                                                         .out = plain(args.out),
                                                         .lse = plain(args.lse),
                                                         .qkv = plain(args.qkv)});
  });
}

void attention_backward(ProfiledStream& stream, const AttentionBackward<ProfiledCuda>& args) {
  OpCost cost = floats(8 * attention_size(args.shape));
  cost.flops = 2.5 * attention_flops(args.shape);
  stream.timed("attention backward", cost, [&](CudaStream& cuda) {
    attention_backward(cuda, AttentionBackward<CudaDevice>{.shape = args.shape,
                                                           .dqkv = plain(args.dqkv),
                                                           .delta = plain(args.delta),
                                                           .dout = plain(args.dout),
                                                           .out = plain(args.out),
                                                           .lse = plain(args.lse),
                                                           .qkv = plain(args.qkv)});
  });
}

void layernorm_forward(ProfiledStream& stream, const LayerNormForward<ProfiledCuda>& args) {
  stream.timed("layernorm forward", floats(2 * args.rows * args.channels), [&](CudaStream& cuda) {
    layernorm_forward(cuda, LayerNormForward<CudaDevice>{.rows = args.rows,
                                                         .channels = args.channels,
                                                         .y = plain(args.y),
                                                         .mean = plain(args.mean),
                                                         .rstd = plain(args.rstd),
                                                         .x = plain(args.x),
                                                         .gamma = plain(args.gamma),
                                                         .beta = plain(args.beta)});
  });
}

void layernorm_backward(ProfiledStream& stream, const LayerNormBackward<ProfiledCuda>& args) {
  stream.timed("layernorm backward", floats(4 * args.rows * args.channels), [&](CudaStream& cuda) {
    layernorm_backward(cuda, LayerNormBackward<CudaDevice>{.rows = args.rows,
                                                           .channels = args.channels,
                                                           .dx = plain(args.dx),
                                                           .dgamma = plain(args.dgamma),
                                                           .dbeta = plain(args.dbeta),
                                                           .dy = plain(args.dy),
                                                           .x = plain(args.x),
                                                           .mean = plain(args.mean),
                                                           .rstd = plain(args.rstd),
                                                           .gamma = plain(args.gamma),
                                                           .accumulate = args.accumulate});
  });
}

void embedding_forward(ProfiledStream& stream, const EmbeddingForward<ProfiledCuda>& args) {
  const int64_t size = args.batch * args.time * args.channels;
  stream.timed("embedding forward", floats(2 * size), [&](CudaStream& cuda) {
    embedding_forward(cuda, EmbeddingForward<CudaDevice>{.batch = args.batch,
                                                         .time = args.time,
                                                         .channels = args.channels,
                                                         .x = plain(args.x),
                                                         .tokens = plain(args.tokens),
                                                         .wte = plain(args.wte),
                                                         .wpe = plain(args.wpe)});
  });
}

void embedding_backward(ProfiledStream& stream, const EmbeddingBackward<ProfiledCuda>& args) {
  const int64_t size = args.batch * args.time * args.channels;
  const int64_t tables = 2 * args.dwte.size() + args.dwpe.size();
  stream.timed("embedding backward", floats(size + tables), [&](CudaStream& cuda) {
    embedding_backward(cuda, EmbeddingBackward<CudaDevice>{.batch = args.batch,
                                                           .time = args.time,
                                                           .channels = args.channels,
                                                           .vocabulary = args.vocabulary,
                                                           .dwte = plain(args.dwte),
                                                           .dwpe = plain(args.dwpe),
                                                           .head = plain(args.head),
                                                           .dx = plain(args.dx),
                                                           .tokens = plain(args.tokens),
                                                           .accumulate = args.accumulate});
  });
}

void cross_entropy(ProfiledStream& stream, const CrossEntropy<ProfiledCuda>& args) {
  const int64_t size = (args.gradient ? 2 : 1) * args.rows * args.padded_vocabulary;
  stream.timed("cross entropy", floats(size), [&](CudaStream& cuda) {
    cross_entropy(cuda, CrossEntropy<CudaDevice>{.rows = args.rows,
                                                 .vocabulary = args.vocabulary,
                                                 .padded_vocabulary = args.padded_vocabulary,
                                                 .gradient = args.gradient,
                                                 .gradient_scale = args.gradient_scale,
                                                 .losses = plain(args.losses),
                                                 .logits = plain(args.logits),
                                                 .targets = plain(args.targets)});
  });
}

void column_sum(ProfiledStream& stream, const ColumnSum<ProfiledCuda>& args) {
  stream.timed("column sum", floats(args.rows * args.columns), [&](CudaStream& cuda) {
    column_sum(cuda, ColumnSum<CudaDevice>{.rows = args.rows,
                                           .columns = args.columns,
                                           .out = plain(args.out),
                                           .in = plain(args.in),
                                           .accumulate = args.accumulate});
  });
}

void squared_norm(ProfiledStream& stream, const SquaredNorm<ProfiledCuda>& args) {
  stream.timed("squared norm", floats(args.x.size()), [&](CudaStream& cuda) {
    squared_norm(cuda, SquaredNorm<CudaDevice>{.out = plain(args.out), .x = plain(args.x)});
  });
}

void segment_norms(ProfiledStream& stream, const SegmentNorms<ProfiledCuda>& args) {
  stream.timed("segment norms", floats(args.shard.size(args.x.size())), [&](CudaStream& cuda) {
    segment_norms(cuda, SegmentNorms<CudaDevice>{
                            .sums = plain(args.sums), .x = plain(args.x), .shard = args.shard});
  });
}

void norm_of_segments(ProfiledStream& stream, const NormOfSegments<ProfiledCuda>& args) {
  stream.timed("norm of segments", {}, [&](CudaStream& cuda) {
    norm_of_segments(cuda,
                     NormOfSegments<CudaDevice>{
                         .out = plain(args.out), .sums = plain(args.sums), .layout = args.layout});
  });
}

void sum(ProfiledStream& stream, const Sum<ProfiledCuda>& args) {
  stream.timed("sum", floats(args.x.size()), [&](CudaStream& cuda) {
    sum(cuda, Sum<CudaDevice>{.out = plain(args.out), .x = plain(args.x), .scale = args.scale});
  });
}

void clip_scale(ProfiledStream& stream, const ClipScale<ProfiledCuda>& args) {
  stream.timed("clip scale", {}, [&](CudaStream& cuda) {
    clip_scale(cuda, ClipScale<CudaDevice>{.step = plain(args.step),
                                           .squared_norm = plain(args.squared_norm),
                                           .grad_clip = args.grad_clip});
  });
}

void adamw(ProfiledStream& stream, const AdamW<ProfiledCuda>& args) {
  stream.timed("adamw", floats(7 * args.m.size()), [&](CudaStream& cuda) {
    adamw(cuda, AdamW<CudaDevice>{.parameters = plain(args.parameters),
                                  .m = plain(args.m),
                                  .v = plain(args.v),
                                  .gradients = plain(args.gradients),
                                  .step = plain(args.step),
                                  .decays = plain(args.decays),
                                  .beta1 = args.beta1,
                                  .beta2 = args.beta2,
                                  .epsilon = args.epsilon,
                                  .weight_decay = args.weight_decay,
                                  .shard = args.shard});
  });
}

}  // namespace lockstep
