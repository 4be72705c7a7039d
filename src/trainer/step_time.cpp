#include "trainer/step_time.h"

#include <fmt/core.h>

#include "core/base/arena_shard.h"
#include "core/model/param_table.h"
#include "kernels/cuda/attention/kind.h"
#include "kernels/cuda/gemm/plan.h"

namespace lockstep {
namespace {

constexpr double kFloat = sizeof(float);

// Of `count` launches that move `floats` floats each.
double moving(int64_t count, int64_t floats) {
  constexpr double kStart = 1.5;
  constexpr double kBytes = 3.9e6;  // a microsecond: 0.92 of a copy
  return static_cast<double>(count) * (kStart + static_cast<double>(floats) * kFloat / kBytes);
}

// Tensor cores that have TF32 work for long draw all the power that a GPU may, and its clock falls
// below the highest, at which rates were taken: an H200's by as much as a fifth, in a median step
// by less. Few rows leave gaps enough.
double slowdown(const StepWork& work) {
  constexpr int64_t kFewRows = 8192;
  constexpr double kAtFullPower = 1.08;
  const bool full =
      work.precision == Precision::kTf32 && work.batch * work.model.block_size > kFewRows;
  return full ? kAtFullPower : 1;
}

// Floating-point operations a microsecond with endless contexts, the context that reaches half of
// that, and a launch: fitted to `attention_bench`, heads of 64, contexts from 256 to 4096.
struct AttentionSpeed {
  double rate;
  double half;
  double start;
};
struct AttentionSpeeds {
  AttentionSpeed forward;
  AttentionSpeed backward;
};

AttentionSpeeds attention_speeds(Precision precision, const AttentionShape& shape) {
  if (precision == Precision::kFp32) {
    return {{45.2e6, 366, 4}, {28.5e6, 184, 6}};
  }
  return wgmma_takes(shape) ? AttentionSpeeds{{388e6, 1320, 4}, {285e6, 985, 12}}
                            : AttentionSpeeds{{198.7e6, 400, 4}, {128.2e6, 270, 6}};
}

double attention_microseconds(const AttentionSpeed& speed, double flops, int64_t time) {
  const auto context = static_cast<double>(time);
  return speed.start + flops * (1 + speed.half / context) / speed.rate;
}

class Prediction {
 public:
  Prediction(const StepWork& work, const CudaFacts& facts)
      : work_(work),
        facts_(facts),
        rows_(work.batch * work.model.block_size),
        channels_(work.model.n_embd) {}

  StepTime run() {
    const GptConfig& model = work_.model;
    const int64_t vocabulary = model.padded_vocab();
    linear(3 * channels_, channels_);
    linear(channels_, channels_);
    linear(4 * channels_, channels_);
    linear(channels_, 4 * channels_);
    attention();
    rows_us_ += column_sums();
    const auto layers = static_cast<double>(model.n_layer);
    products_us_ *= layers;
    attention_us_ *= layers;
    rows_us_ *= layers;
    linear(vocabulary, channels_);  // the head, tied to the embedding
    products_us_ *= slowdown(work_);
    attention_us_ *= slowdown(work_);
    const int64_t size = rows_ * channels_;
    const int64_t norms = 2 * model.n_layer + 1;
    rows_us_ += moving(norms, 2 * size) + moving(norms, 4 * size);     // forward, backward
    rows_us_ += moving(1, 2 * rows_ * vocabulary) + moving(1, rows_);  // loss, its mean
    rows_us_ += moving(1, 2 * size) + moving(2, size + 2 * vocabulary * channels_);  // embedding
    const int64_t updated = ArenaShard{0, work_.update_ranks}.size(ParamTable(model).arena_size());
    const double steps = static_cast<double>(work_.micro_steps) * 1e-3;
    return {.products = products_us_ * steps,
            .attention = attention_us_ * steps,
            .rows = rows_us_ * steps,
            .optimizer = (moving(1, 7 * updated) + moving(1, updated)) * 1e-3};
  }

 private:
  // A layer x (rows, in) -> (rows, out): forward, the input's gradient and the weight's.
  void linear(int64_t out, int64_t in) {
    product({rows_, out, in, Transpose::kNo, Transpose::kYes});
    product({rows_, in, out, Transpose::kNo, Transpose::kNo});
    product({out, in, rows_, Transpose::kYes, Transpose::kNo});
  }

  void product(const GemmQuery& query) {
    products_us_ += plan_microseconds(plan_gemm(query, work_.precision, facts_), query, facts_);
  }

  // Two products forward, five backward, of a triangle.
  void attention() {
    const int64_t time = work_.model.block_size;
    const double forward =
        2.0 * static_cast<double>(rows_ * channels_) * static_cast<double>(time + 1);
    const AttentionShape shape = {.batch = work_.batch,
                                  .time = time,
                                  .heads = work_.model.n_head,
                                  .head_dim = work_.model.head_dim()};
    const AttentionSpeeds speeds = attention_speeds(work_.precision, shape);
    attention_us_ += attention_microseconds(speeds.forward, forward, time) +
                     attention_microseconds(speeds.backward, 2.5 * forward, time);
  }

  // Of the biases, of one layer.
  double column_sums() const {
    const int64_t size = rows_ * channels_;
    return 2 * moving(1, size) + moving(1, 3 * size) + moving(1, 4 * size);
  }

  const StepWork& work_;
  const CudaFacts& facts_;
  int64_t rows_;
  int64_t channels_;
  double products_us_ = 0;
  double attention_us_ = 0;
  double rows_us_ = 0;
};

}  // namespace

std::optional<StepTime> predict_step(const StepWork& work, const CudaFacts& facts) {
  if (facts.compute_capability != 90) {
    return {};
  }
  return Prediction(work, facts).run();
}

std::string step_time_report(const StepWork& work, const CudaFacts& facts) {
  const std::optional<StepTime> time = predict_step(work, facts);
  if (!time) {
    return fmt::format("a step's time is not predicted for {}", facts.name);
  }
  return fmt::format(
      "a step is predicted to take {:.2f} ms without sums over ranks: products {:.2f}, attention "
      "{:.2f}, norms, sums and loss {:.2f}, optimizer {:.2f}",
      time->total(), time->products, time->attention, time->rows, time->optimizer);
}

}  // namespace lockstep
