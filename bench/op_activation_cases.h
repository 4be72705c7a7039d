#pragma once

#include <fmt/core.h>

#include <string>

#include "bench_model.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/layernorm.h"
#include "op_case_maker.h"

// The ops on activations. Where these are used, the ops of the device must be declared.

namespace lockstep {

template <class Device>
void add_layernorm(OpCaseMaker<Device>& cases, const BenchModel& model) {
  auto& operands = cases.operands();
  const GptConfig& config = model.config;
  const int64_t rows = model.tokens();
  const int64_t channels = config.n_embd;
  const int64_t size = rows * channels;
  const auto x = operands.normal(size, 1);
  const auto dy = operands.normal(size, 2);
  const auto out = operands.normal(size, 3);
  const auto gamma = operands.normal(channels, 4);
  const auto beta = operands.normal(channels, 5);
  const auto mean = operands.normal(rows, 6);
  const auto rstd = operands.normal(rows, 7);
  cases.add("layernorm forward", rows_by_columns(rows, channels), 2 * size, 0,
            2 * config.n_layer + 1, [=](auto& stream) {
              layernorm_forward(stream, {.rows = rows,
                                         .channels = channels,
                                         .y = at(out),
                                         .mean = at(mean),
                                         .rstd = at(rstd),
                                         .x = at(x),
                                         .gamma = at(gamma),
                                         .beta = at(beta)});
            });
  const auto dgamma = operands.normal(channels, 8);
  const auto dbeta = operands.normal(channels, 9);
  cases.add("layernorm backward", rows_by_columns(rows, channels), 4 * size, 0,
            2 * config.n_layer + 1, [=](auto& stream) {
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

template <class Device>
void add_attention(OpCaseMaker<Device>& cases, const BenchModel& model) {
  auto& operands = cases.operands();
  const GptConfig& config = model.config;
  const AttentionShape shape = {.batch = model.batch,
                                .time = config.block_size,
                                .heads = config.n_head,
                                .head_dim = config.head_dim()};
  const int64_t size = model.tokens() * config.n_embd;
  const int64_t heads = shape.batch * shape.heads;
  const int64_t pairs = heads * shape.time * (shape.time + 1) / 2;  // of a query and a key
  const auto qkv = operands.normal(3 * size, 1);
  const auto dqkv = operands.normal(3 * size, 2);
  const auto out = operands.normal(size, 3);
  const auto dout = operands.normal(size, 4);
  const auto lse = operands.normal(heads * shape.time, 5);
  const auto delta = operands.normal(heads * shape.time, 6);
  const std::string name =
      fmt::format("{} x {} x {} x {}", shape.batch, shape.time, shape.heads, shape.head_dim);
  const AttentionForward<Device> forward = {
      .shape = shape, .out = at(out), .lse = at(lse), .qkv = at(qkv)};
  attention_forward(cases.stream(), forward);  // backward needs its results
  cases.add("attention forward", name, 4 * size, 4 * shape.head_dim * pairs, config.n_layer,
            [=](auto& stream) {
              attention_forward(stream,
                                {.shape = shape, .out = at(out), .lse = at(lse), .qkv = at(qkv)});
            });
  cases.add("attention backward", name, 8 * size, 10 * shape.head_dim * pairs, config.n_layer,
            [=](auto& stream) {
              attention_backward(stream, {.shape = shape,
                                          .dqkv = at(dqkv),
                                          .delta = at(delta),
                                          .dout = at(dout),
                                          .out = at(out),
                                          .lse = at(lse),
                                          .qkv = at(qkv)});
            });
}

template <class Device>
void add_cross_entropy(OpCaseMaker<Device>& cases, const BenchModel& model) {
  auto& operands = cases.operands();
  const GptConfig& config = model.config;
  const int64_t rows = model.tokens();
  const int64_t vocabulary = config.vocab_size;
  const int64_t columns = config.padded_vocab();
  const auto logits = operands.normal(rows * columns, 1);
  const auto losses = operands.normal(rows, 2);
  const auto targets = operands.symbols(rows, vocabulary);
  // Runs on what it left the last time, which is no slower and no faster.
  cases.add("cross-entropy", rows_by_columns(rows, vocabulary), 2 * rows * columns, 0, 1,
            [=](auto& stream) {
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

template <class Device>
void add_embedding(OpCaseMaker<Device>& cases, const BenchModel& model) {
  auto& operands = cases.operands();
  const GptConfig& config = model.config;
  const int64_t channels = config.n_embd;
  const int64_t batch = model.batch;
  const int64_t time = config.block_size;
  const int64_t vocabulary = config.padded_vocab();
  const int64_t size = model.tokens() * channels;
  const auto x = operands.normal(size, 1);
  const auto wte = operands.normal(vocabulary * channels, 2);
  const auto wpe = operands.normal(time * channels, 3);
  const auto dwte = operands.normal(vocabulary * channels, 4);
  const auto dwpe = operands.normal(time * channels, 5);
  const auto tokens = operands.symbols(model.tokens(), config.vocab_size);
  const std::string shape = rows_by_columns(model.tokens(), channels);
  cases.add("embedding forward", shape, 3 * size, 0, 1, [=](auto& stream) {
    embedding_forward(stream, {.batch = batch,
                               .time = time,
                               .channels = channels,
                               .x = at(x),
                               .tokens = tokens->view(),
                               .wte = at(wte),
                               .wpe = at(wpe)});
  });
  cases.add("embedding backward", shape, size + (2 * vocabulary + time) * channels, 0, 1,
            [=](auto& stream) {
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

}  // namespace lockstep
