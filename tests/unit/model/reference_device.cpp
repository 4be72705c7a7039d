#include "unit/model/reference_device.h"

#include <cmath>
#include <vector>

#include "core/model/gpt_impl.h"
#include "support/naive_ops.h"

namespace lockstep {
namespace {

using Doubles = std::vector<double>;
using ConstView = View<ReferenceDevice, const float>;
using MutableView = View<ReferenceDevice, float>;

Doubles load(ConstView view, int64_t size) {
  LOCKSTEP_CHECK(size <= view.size(), "{} elements of a view of {}", size, view.size());
  return {view.begin(), view.begin() + size};
}

std::vector<int32_t> load(View<ReferenceDevice, const int32_t> view, int64_t size) {
  LOCKSTEP_CHECK(size <= view.size(), "{} tokens of a view of {}", size, view.size());
  return {view.begin(), view.begin() + size};
}

void store(MutableView view, const Doubles& values, bool accumulate = false) {
  const auto size = static_cast<int64_t>(values.size());
  LOCKSTEP_CHECK(size <= view.size(), "{} elements into a view of {}", size, view.size());
  for (int64_t i = 0; i < size; ++i) {
    const auto finished = static_cast<float>(values[static_cast<size_t>(i)]);
    view[i] = accumulate ? view[i] + finished : finished;
  }
}

void finish(const ReferenceStream& stream) {
  if (stream.after_op) {
    stream.after_op();
  }
}

Doubles product(const Gemm<ReferenceDevice>& args) {
  const Doubles a = load(args.a, args.m * args.k);
  const Doubles b = load(args.b, args.k * args.n);
  Doubles c;
  for (int64_t i = 0; i < args.m; ++i) {
    for (int64_t j = 0; j < args.n; ++j) {
      double dot = 0;
      for (int64_t p = 0; p < args.k; ++p) {
        const int64_t at_a = args.trans_a == Transpose::kYes ? p * args.m + i : i * args.k + p;
        const int64_t at_b = args.trans_b == Transpose::kYes ? j * args.k + p : p * args.n + j;
        dot += a[static_cast<size_t>(at_a)] * b[static_cast<size_t>(at_b)];
      }
      c.push_back(dot);
    }
  }
  return c;
}

}  // namespace

void set_zero(ReferenceStream& stream, MutableView view) {
  store(view, Doubles(static_cast<size_t>(view.size())));
  finish(stream);
}

void gemm(ReferenceStream& stream, const Gemm<ReferenceDevice>& args) {
  Doubles value = product(args);
  for (size_t i = 0; i < value.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    value[i] += args.bias.empty() ? 0.0 : args.bias[at % args.n];
    value[i] += args.residual.empty() ? 0.0 : args.residual[at];
  }
  if (!args.gelu_derivative.empty()) {
    store(args.gelu_derivative, naive::gelu_derivative(args.gelu.value(), value));
  }
  if (args.gelu) {
    value = naive::gelu(*args.gelu, value);
  }
  for (size_t i = 0; i < value.size() && !args.factor.empty(); ++i) {
    value[i] *= args.factor[static_cast<int64_t>(i)];
  }
  store(args.c, value, args.accumulate);
  finish(stream);
}

void layernorm_forward(ReferenceStream& stream, const LayerNormForward<ReferenceDevice>& args) {
  const auto result =
      naive::layernorm(load(args.x, args.rows * args.channels), load(args.gamma, args.channels),
                       load(args.beta, args.channels));
  store(args.y, result.y);
  store(args.mean, result.mean);
  store(args.rstd, result.rstd);
  finish(stream);
}

void weight_gradient(ReferenceStream& stream, const WeightGradient<ReferenceDevice>& args) {
  column_sum(stream, {.rows = args.rows,
                      .columns = args.out,
                      .out = args.bias,
                      .in = args.dy,
                      .accumulate = args.accumulate});
  if (args.norm) {
    store(args.norm->memory,
          naive::layernorm(load(args.x, args.rows * args.in), load(args.norm->gamma, args.in),
                           load(args.norm->beta, args.in))
              .y);
  }
  gemm(stream, {.m = args.out,
                .n = args.in,
                .k = args.rows,
                .trans_a = Transpose::kYes,
                .a = args.dy,
                .b = args.norm ? ConstView(args.norm->memory) : args.x,
                .c = args.weight,
                .accumulate = args.accumulate});
}

void layernorm_backward(ReferenceStream& stream, const LayerNormBackward<ReferenceDevice>& args) {
  const Doubles dy = load(args.dy, args.rows * args.channels);
  const Doubles x = load(args.x, args.rows * args.channels);
  const Doubles gamma = load(args.gamma, args.channels);
  auto gradient = naive::layernorm_backward(dy, x, gamma);
  if (stream.drop_normalised_mean) {
    const auto c = static_cast<size_t>(args.channels);
    for (size_t i = 0; i < x.size(); i += c) {
      const auto row = static_cast<int64_t>(i / c);
      const auto normalised = [&](size_t j) {
        return (x[i + j] - args.mean[row]) * args.rstd[row];
      };
      double mean = 0;
      for (size_t j = 0; j < c; ++j) {
        mean += dy[i + j] * gamma[j] * normalised(j) / static_cast<double>(c);
      }
      for (size_t j = 0; j < c; ++j) {
        gradient.dx[i + j] += args.rstd[row] * normalised(j) * mean;
      }
    }
  }
  store(args.dx, gradient.dx, true);
  store(args.dgamma, gradient.dgamma, args.accumulate);
  store(args.dbeta, gradient.dbeta, args.accumulate);
  finish(stream);
}

void attention_forward(ReferenceStream& stream, const AttentionForward<ReferenceDevice>& args) {
  const int64_t rows = args.shape.batch * args.shape.time;
  const int64_t channels = args.shape.heads * args.shape.head_dim;
  const auto result = naive::attention(args.shape, load(args.qkv, rows * 3 * channels));
  store(args.out, result.out);
  store(args.lse, result.lse);
  finish(stream);
}

void attention_backward(ReferenceStream& stream, const AttentionBackward<ReferenceDevice>& args) {
  const int64_t rows = args.shape.batch * args.shape.time;
  const int64_t channels = args.shape.heads * args.shape.head_dim;
  store(args.dqkv, naive::attention_backward(args.shape, load(args.dout, rows * channels),
                                             load(args.qkv, rows * 3 * channels)));
  finish(stream);
}

void cross_entropy(ReferenceStream& stream, const CrossEntropy<ReferenceDevice>& args) {
  const auto result = naive::cross_entropy(
      args.vocabulary, static_cast<double>(args.gradient_scale),
      load(args.logits, args.rows * args.padded_vocabulary), load(args.targets, args.rows));
  store(args.losses, result.losses);
  if (args.gradient) {
    store(args.logits, result.dlogits);
  }
  finish(stream);
}

void embedding_forward(ReferenceStream& stream, const EmbeddingForward<ReferenceDevice>& args) {
  store(args.x, naive::embedding(args.time, load(args.tokens, args.batch * args.time),
                                 load(args.wte, args.wte.size()),
                                 load(args.wpe, args.time * args.channels)));
  finish(stream);
}

void embedding_backward(ReferenceStream& stream, const EmbeddingBackward<ReferenceDevice>& args) {
  const auto result = naive::embedding_backward(
      args.time, args.dwpe.size() / args.channels, load(args.tokens, args.batch * args.time),
      load(args.head, args.vocabulary * args.channels),
      load(args.dx, args.batch * args.time * args.channels));
  store(args.dwte, result.dwte, args.accumulate);
  store(args.dwpe, result.dwpe, args.accumulate);
  finish(stream);
}

void column_sum(ReferenceStream& stream, const ColumnSum<ReferenceDevice>& args) {
  store(args.out, naive::column_sum(args.columns, load(args.in, args.rows * args.columns)),
        args.accumulate);
  finish(stream);
}

void sum(ReferenceStream& stream, const Sum<ReferenceDevice>& args) {
  double total = 0;
  for (const float x : args.x) {
    total += x;
  }
  store(args.out, {args.scale * total});
  finish(stream);
}

template class Gpt<ReferenceDevice>;

}  // namespace lockstep
