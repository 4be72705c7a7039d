#pragma once

#include <fmt/core.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/model/param_table.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/layernorm.h"
#include "kernels/reduce.h"
#include "op_cases.h"
#include "op_operands.h"

namespace lockstep {

/// Makes the cases of one device. Where it is used the ops of that device must be declared.
template <class Device>
class OpCaseList {
 public:
  using Stream = typename Device::Stream;

  /// The stream outlives the cases.
  OpCaseList(const BenchModel& model, Stream& stream)
      : model_(model), config_(model.config), stream_(stream) {}

  void layernorm() {
    const int64_t rows = model_.tokens();
    const int64_t channels = config_.n_embd;
    const int64_t size = rows * channels;
    const Floats x = normal(size, 1);
    const Floats dy = normal(size, 2);
    const Floats out = normal(size, 3);
    const Floats gamma = normal(channels, 4);
    const Floats beta = normal(channels, 5);
    const Floats mean = normal(rows, 6);
    const Floats rstd = normal(rows, 7);
    add("layernorm forward", rows_by_columns(rows, channels), 2 * size, 0, 2 * config_.n_layer + 1,
        [=](Stream& stream) {
          layernorm_forward(stream, {.rows = rows,
                                     .channels = channels,
                                     .y = at(out),
                                     .mean = at(mean),
                                     .rstd = at(rstd),
                                     .x = at(x),
                                     .gamma = at(gamma),
                                     .beta = at(beta)});
        });
    const Floats dgamma = normal(channels, 8);
    const Floats dbeta = normal(channels, 9);
    add("layernorm backward", rows_by_columns(rows, channels), 4 * size, 0, 2 * config_.n_layer + 1,
        [=](Stream& stream) {
          layernorm_backward(stream, {.rows = rows,
                                      .channels = channels,
                                      .dx = at(out),
                                      .dgamma = at(dgamma),
                                      .dbeta = at(dbeta),
                                      .dy = at(dy),
                                      .x = at(x),
                                      .mean = at(mean),
                                      .rstd = at(rstd),
                                      .gamma = at(gamma)});
        });
  }

  void attention() {
    const AttentionShape shape = {.batch = model_.batch,
                                  .time = config_.block_size,
                                  .heads = config_.n_head,
                                  .head_dim = config_.head_dim()};
    const int64_t size = model_.tokens() * config_.n_embd;
    const int64_t heads = shape.batch * shape.heads;
    const int64_t pairs = heads * shape.time * (shape.time + 1) / 2;  // of a query and a key
    const Floats qkv = normal(3 * size, 1);
    const Floats dqkv = normal(3 * size, 2);
    const Floats out = normal(size, 3);
    const Floats dout = normal(size, 4);
    const Floats lse = normal(heads * shape.time, 5);
    const Floats delta = normal(heads * shape.time, 6);
    const std::string name =
        fmt::format("{} x {} x {} x {}", shape.batch, shape.time, shape.heads, shape.head_dim);
    const AttentionForward<Device> forward = {
        .shape = shape, .out = at(out), .lse = at(lse), .qkv = at(qkv)};
    attention_forward(stream_, forward);  // backward needs its results
    add("attention forward", name, 4 * size, 4 * shape.head_dim * pairs, config_.n_layer,
        [=](Stream& stream) {
          attention_forward(stream,
                            {.shape = shape, .out = at(out), .lse = at(lse), .qkv = at(qkv)});
        });
    add("attention backward", name, 8 * size, 10 * shape.head_dim * pairs, config_.n_layer,
        [=](Stream& stream) {
          attention_backward(stream, {.shape = shape,
                                      .dqkv = at(dqkv),
                                      .delta = at(delta),
                                      .dout = at(dout),
                                      .out = at(out),
                                      .lse = at(lse),
                                      .qkv = at(qkv)});
        });
  }

  void cross_entropy() {
    const int64_t rows = model_.tokens();
    const int64_t vocabulary = config_.vocab_size;
    const int64_t columns = config_.padded_vocab();
    const Floats logits = normal(rows * columns, 1);
    const Floats losses = normal(rows, 2);
    const auto targets = symbols(rows, vocabulary);
    // Runs on what it left the last time, which is no slower and no faster.
    add("cross-entropy", rows_by_columns(rows, vocabulary), 2 * rows * columns, 0, 1,
        [=](Stream& stream) {
          lockstep::cross_entropy(stream, {.rows = rows,
                                           .vocabulary = vocabulary,
                                           .padded_vocabulary = columns,
                                           .gradient = true,
                                           .gradient_scale = 1.0F / static_cast<float>(rows),
                                           .losses = at(losses),
                                           .logits = at(logits),
                                           .targets = targets->view()});
        });
  }

  void embedding() {
    const int64_t channels = config_.n_embd;
    const int64_t batch = model_.batch;
    const int64_t time = config_.block_size;
    const int64_t vocabulary = config_.padded_vocab();
    const int64_t size = model_.tokens() * channels;
    const Floats x = normal(size, 1);
    const Floats wte = normal(vocabulary * channels, 2);
    const Floats wpe = normal(time * channels, 3);
    const Floats dwte = normal(vocabulary * channels, 4);
    const Floats dwpe = normal(time * channels, 5);
    const auto tokens = symbols(model_.tokens(), config_.vocab_size);
    const std::string shape = rows_by_columns(model_.tokens(), channels);
    add("embedding forward", shape, 3 * size, 0, 1, [=](Stream& stream) {
      embedding_forward(stream, {.batch = batch,
                                 .time = time,
                                 .channels = channels,
                                 .x = at(x),
                                 .tokens = tokens->view(),
                                 .wte = at(wte),
                                 .wpe = at(wpe)});
    });
    add("embedding backward", shape, size + (2 * vocabulary + time) * channels, 0, 1,
        [=](Stream& stream) {
          embedding_backward(stream, {.batch = batch,
                                      .time = time,
                                      .channels = channels,
                                      .vocabulary = vocabulary,
                                      .dwte = at(dwte),
                                      .dwpe = at(dwpe),
                                      .head = at(wte),
                                      .dx = at(x),
                                      .tokens = tokens->view()});
        });
  }

  // The bias gradients of a layer: of qkv, the two projections and the wide half of the MLP.
  void column_sums() {
    const int64_t rows = model_.tokens();
    for (const int64_t factor : {int64_t{1}, int64_t{3}, int64_t{4}}) {
      const int64_t columns = factor * config_.n_embd;
      const Floats in = normal(rows * columns, 1);
      const Floats out = normal(columns, 2);
      add("column sum", rows_by_columns(rows, columns), rows * columns, 0,
          (factor == 1 ? 2 : 1) * config_.n_layer, [=](Stream& stream) {
            column_sum(stream, {.rows = rows, .columns = columns, .out = at(out), .in = at(in)});
          });
    }
  }

  void parameters() {
    const int64_t size = ParamTable(config_).arena_size();
    const Floats p = normal(size, 1);
    const Floats m = normal(size, 2);
    const Floats v = operands_.squares(size, 3);
    const Floats g = normal(size, 4);
    const auto norm = std::make_shared<Buffer<Device, double>>(1);
    const auto step = std::make_shared<Buffer<Device, AdamWStep>>(1);
    const AdamWStep scalars = {.learning_rate = 1e-3F};
    copy_from_host(stream_, step->view(), &scalars);
    stream_.synchronize();
    const std::string shape = fmt::format("{}", size);
    add("squared norm", shape, size, 0, 1,
        [=](Stream& stream) { squared_norm(stream, {.out = norm->view(), .x = at(g)}); });
    add("adamw", shape, 7 * size, 0, 1, [=](Stream& stream) {
      adamw(
          stream,
          {.parameters = at(p), .m = at(m), .v = at(v), .gradients = at(g), .step = step->view()});
    });
    add("add into", shape, 3 * size, 0, 0, [=](Stream& stream) { add_into(stream, at(m), at(g)); });
  }

  std::vector<OpCase> take() { return std::move(cases_); }

 private:
  using Floats = typename OpOperands<Device>::Floats;

  Floats normal(int64_t size, uint64_t seed) { return operands_.normal(size, seed); }
  auto symbols(int64_t size, int64_t vocabulary) { return operands_.symbols(size, vocabulary); }
  static View<Device, float> at(const Floats& buffer) { return buffer->view(); }

  static std::string rows_by_columns(int64_t rows, int64_t columns) {
    return fmt::format("{} x {}", rows, columns);
  }

  template <class Op>
  void add(std::string name, std::string shape, int64_t floats, int64_t flop, int64_t calls,
           Op op) {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    cases_.push_back({std::move(name), std::move(shape), floats * kFloat, flop, calls,
                      [op = std::move(op), stream = &stream_] { op(*stream); }});
  }

  BenchModel model_;
  GptConfig config_;
  Stream& stream_;
  OpOperands<Device> operands_{stream_};
  std::vector<OpCase> cases_;
};

}  // namespace lockstep
