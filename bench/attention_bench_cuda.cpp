// attention_bench: the three implementations in turns.
#include "attention_bench_cuda.h"

#include <fmt/core.h>

#include <functional>
#include <optional>

#include "core/base/build_id.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/device/cuda_device.h"
#include "graph_timer.h"
#include "kernels/cuda/attention/attention.h"
#include "normal_values.h"

namespace lockstep {
namespace {

struct Subject {
  const char* name;
  AttentionKind kind;
};
constexpr Subject kSubjects[] = {{"unfused fp32", AttentionKind::kUnfused},
                                 {"flash fp32", AttentionKind::kFlashFp32},
                                 {"flash TF32", AttentionKind::kFlashTf32}};

// Unfused attention is left out where its scratch memory would be larger.
constexpr int64_t kLargestScratch = int64_t{32} << 30;

struct Row {
  AttentionShape shape;
  Subject subject{};
  GraphTimer::Figures forward;
  GraphTimer::Figures backward;
  int64_t forward_bytes = 0;  // of scratch memory
  int64_t backward_bytes = 0;
};

int64_t elements(const AttentionShape& shape) {
  return shape.batch * shape.time * shape.heads * shape.head_dim;
}
int64_t rows_of(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.time;
}
int64_t kept_bytes(const AttentionShape& shape) {
  return 4 * (elements(shape) + rows_of(shape));
}

// Of one product under the diagonal.
double flop(const AttentionShape& shape) {
  return static_cast<double>(rows_of(shape)) * static_cast<double>(shape.time) *
         static_cast<double>(shape.head_dim);
}

class Tensors {
 public:
  Tensors(CudaStream& stream, const AttentionShape& shape)
      : shape_(shape),
        qkv_(3 * elements(shape)),
        out_(elements(shape)),
        lse_(rows_of(shape)),
        dout_(elements(shape)),
        dqkv_(3 * elements(shape)),
        delta_(rows_of(shape)) {
    copy_from_host(stream, qkv_.view(), normal_values(qkv_.size(), 0).data());
    copy_from_host(stream, dout_.view(), normal_values(dout_.size(), 1).data());
    stream.synchronize();
  }
  AttentionForward<CudaDevice> forward() {
    return {
        .shape = shape_, .out = out_.view(), .lse = lse_.view(), .qkv = std::as_const(qkv_).view()};
  }
  AttentionBackward<CudaDevice> backward() {
    return {.shape = shape_,
            .dqkv = dqkv_.view(),
            .delta = delta_.view(),
            .dout = std::as_const(dout_).view(),
            .out = std::as_const(out_).view(),
            .lse = std::as_const(lse_).view(),
            .qkv = std::as_const(qkv_).view()};
  }

 private:
  AttentionShape shape_;
  CudaBuffer<float> qkv_;
  CudaBuffer<float> out_;
  CudaBuffer<float> lse_;
  CudaBuffer<float> dout_;
  CudaBuffer<float> dqkv_;
  CudaBuffer<float> delta_;
};

std::vector<Row> measure(const SmClock& clock, const AttentionShape& shape, double seconds) {
  CudaStream stream;
  Tensors tensors(stream, shape);
  std::vector<Row> rows;
  std::vector<std::function<void()>> bodies;
  for (const Subject& subject : kSubjects) {
    const int64_t scratch = attention_backward_scratch_bytes(subject.kind, shape);
    if (scratch > kLargestScratch ||
        (subject.kind != AttentionKind::kUnfused && shape.head_dim > kFlashHeadDim)) {
      continue;
    }
    bodies.emplace_back([&stream, &tensors, kind = subject.kind] {
      attention_forward(stream, kind, tensors.forward());
    });
    bodies.emplace_back([&stream, &tensors, kind = subject.kind] {
      attention_backward(stream, kind, tensors.backward());
    });
    rows.push_back({.shape = shape,
                    .subject = subject,
                    .forward = {},
                    .backward = {},
                    .forward_bytes = attention_forward_scratch_bytes(subject.kind, shape),
                    .backward_bytes = scratch});
  }
  const std::vector<GraphTimer::Figures> figures = GraphTimer(stream, clock, seconds).run(bodies);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].forward = figures[2 * i];
    rows[i].backward = figures[2 * i + 1];
  }
  return rows;
}

double teraflops(const AttentionShape& shape, int products, const GraphTimer::Figures& figures) {
  return products * flop(shape) / figures.seconds() * 1e-12;
}

const char* clock_of(const Row& row) {
  return row.forward.pinned ? row.backward.clock() : row.forward.clock();
}

void print_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const AttentionShape& shape = row.shape;
    constexpr double mib = 1 << 20;
    fmt::print(
        "{:>3} {:>3} {:>5} {:>4}  {:<13} {:>9.1f} {:>7.1f} {:>9.1f} {:>7.1f} {:>9.1f} {:>9.1f} "
        "{:>5}-{:<5} {}\n",
        shape.batch, shape.heads, shape.time, shape.head_dim, row.subject.name,
        row.forward.seconds() * 1e6, teraflops(shape, 2, row.forward), row.backward.seconds() * 1e6,
        teraflops(shape, 5, row.backward), static_cast<double>(kept_bytes(shape)) / mib,
        static_cast<double>(row.backward_bytes) / mib, row.forward.lowest_mhz,
        row.backward.highest_mhz, clock_of(row));
  }
  std::fflush(stdout);
}

std::string json_of(const Row& row) {
  const AttentionShape& shape = row.shape;
  return fmt::format(
      R"(  {{"b": {}, "h": {}, "t": {}, "d": {}, "kind": "{}", "forward_us": {:.3f}, )"
      R"("forward_tflops": {:.2f}, "backward_us": {:.3f}, "backward_tflops": {:.2f}, )"
      R"("kept_bytes": {}, "forward_scratch_bytes": {}, "backward_scratch_bytes": {}, )"
      R"("sm_mhz": [{}, {}], "clock": "{}"}})",
      shape.batch, shape.heads, shape.time, shape.head_dim, row.subject.name,
      row.forward.seconds() * 1e6, teraflops(shape, 2, row.forward), row.backward.seconds() * 1e6,
      teraflops(shape, 5, row.backward), kept_bytes(shape), row.forward_bytes, row.backward_bytes,
      row.forward.lowest_mhz, row.backward.highest_mhz, clock_of(row));
}

}  // namespace

void run_attention_bench(const AttentionBench& bench) {
  require_cuda_device();
  const CudaFacts facts = cuda_facts(0);
  const SmClock clock(facts.pci_id);
  fmt::print("# {}, {} multiprocessors, driver {}, build {}\n", facts.name, facts.multiprocessors,
             clock.driver(), build_id());
  fmt::print("{:>3} {:>3} {:>5} {:>4}  {:<13} {:>9} {:>7} {:>9} {:>7} {:>9} {:>9} {:>11}\n", "B",
             "H", "T", "D", "kind", "fwd_us", "TFLOP/s", "bwd_us", "TFLOP/s", "kept_MiB",
             "extra_MiB", "SM MHz");
  std::string body;
  for (const AttentionShape& shape : bench.shapes) {
    const std::vector<Row> rows = measure(clock, shape, bench.seconds);
    print_rows(rows);
    for (const Row& row : rows) {
      body += (body.empty() ? "\n" : ",\n") + json_of(row);
    }
  }
  if (!bench.json.empty()) {
    replace_file(bench.json,
                 fmt::format(R"({{"bench": "attention", "build": "{}", "device": "{}", )"
                             R"("multiprocessors": {}, "driver": "{}", "results": [{}
]}}
)",
                             build_id(), facts.name, facts.multiprocessors, clock.driver(), body));
  }
}

}  // namespace lockstep
