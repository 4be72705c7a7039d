#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>

#include "bench_model.h"
#include "core/model/param_table.h"
#include "kernels/adamw.h"
#include "kernels/reduce.h"
#include "op_case_maker.h"

// The ops on parameters and their gradients. Where these are used, the ops of the device must be
// declared.

namespace lockstep {

// The bias gradients of a layer: of qkv, the two projections and the wide half of the MLP.
template <class Device>
void add_column_sums(OpCaseMaker<Device>& cases, const BenchModel& model) {
  auto& operands = cases.operands();
  const GptConfig& config = model.config;
  const int64_t rows = model.tokens();
  for (const int64_t factor : {int64_t{1}, int64_t{3}, int64_t{4}}) {
    const int64_t columns = factor * config.n_embd;
    const auto in = operands.normal(rows * columns, 1);
    const auto out = operands.normal(columns, 2);
    cases.add("column sum", rows_by_columns(rows, columns), rows * columns, 0,
              (factor == 1 ? 2 : 1) * config.n_layer, [=](auto& stream) {
                column_sum(stream,
                           {.rows = rows, .columns = columns, .out = at(out), .in = at(in)});
              });
  }
}

template <class Device>
void add_parameters(OpCaseMaker<Device>& cases, const BenchModel& model) {
  auto& operands = cases.operands();
  const GptConfig& config = model.config;
  const int64_t size = ParamTable(config).arena_size();
  const auto p = operands.normal(size, 1);
  const auto m = operands.normal(size, 2);
  const auto v = operands.squares(size, 3);
  const auto g = operands.normal(size, 4);
  const auto norm = std::make_shared<Buffer<Device, double>>(1);
  const auto step = std::make_shared<Buffer<Device, AdamWStep>>(1);
  const AdamWStep scalars = {.learning_rate = 1e-3F};
  copy_from_host(cases.stream(), step->view(), &scalars);
  cases.stream().synchronize();
  const std::string shape = fmt::format("{}", size);
  cases.add("squared norm", shape, size, 0, 1,
            [=](auto& stream) { squared_norm(stream, {.out = norm->view(), .x = at(g)}); });
  cases.add("adamw", shape, 7 * size, 0, 1, [=](auto& stream) {
    adamw(stream,
          {.parameters = at(p), .m = at(m), .v = at(v), .gradients = at(g), .step = step->view()});
  });
  cases.add("add into", shape, 3 * size, 0, 0,
            [=](auto& stream) { add_into(stream, at(m), at(g)); });
}

}  // namespace lockstep
