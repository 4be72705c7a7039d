#include "kernels/embedding.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

struct Case {
  int64_t batch;
  int64_t time;
  int64_t block_size;
  int64_t channels;
  int64_t vocabulary;
};
constexpr Case kCases[] = {{1, 1, 1, 1, 1},      {2, 3, 5, 7, 4},         {6, 64, 64, 128, 80},
                           {3, 33, 40, 100, 65}, {2, 100, 128, 20, 5003}, {1, 700, 700, 33, 3}};

struct Inputs {
  explicit Inputs(const Case& c)
      : wte(normal_values(c.vocabulary * c.channels, 1)),
        wpe(normal_values(c.block_size * c.channels, 2)),
        head(normal_values(c.vocabulary * c.channels, 3)),
        dx(normal_values(c.batch * c.time * c.channels, 4)),
        dwte(normal_values(c.vocabulary * c.channels, 5)),
        dwpe(normal_values(c.block_size * c.channels, 6)) {
    for (int64_t i = 0; i < c.batch * c.time; ++i) {
      tokens.push_back(static_cast<int32_t>(random_bits(7, 0, static_cast<uint64_t>(i)) %
                                            static_cast<uint64_t>(c.vocabulary)));
    }
  }
  std::vector<float> wte, wpe, head, dx, dwte, dwpe;
  std::vector<int32_t> tokens;
};

struct Gradient {
  std::vector<float> dwte, dwpe;
};

Gradient run_backward(CpuStream& stream, const Case& c, const Inputs& in, const Gradient& start,
                      bool accumulate) {
  Output dwte(start.dwte);
  Output dwpe(start.dwpe);
  embedding_backward(stream, {.batch = c.batch,
                              .time = c.time,
                              .channels = c.channels,
                              .vocabulary = c.vocabulary,
                              .dwte = dwte.view(),
                              .dwpe = dwpe.view(),
                              .head = view_of(in.head),
                              .dx = view_of(in.dx),
                              .tokens = view_of(in.tokens),
                              .accumulate = accumulate});
  return {dwte.values(), dwpe.values()};
}

// Over poison: nothing that was there may matter.
Gradient run_backward(CpuStream& stream, const Case& c, const Inputs& in) {
  return run_backward(
      stream, c, in,
      {Output(c.vocabulary * c.channels).values(), Output(c.block_size * c.channels).values()},
      false);
}

TEST(Embedding, ForwardMatchesTheReference) {
  for (const Case& c : kCases) {
    const Inputs in(c);
    const auto x = at_any_thread_count("x", [&](CpuStream& stream) {
      Output out(c.batch * c.time * c.channels);
      embedding_forward(stream, {.batch = c.batch,
                                 .time = c.time,
                                 .channels = c.channels,
                                 .x = out.view(),
                                 .tokens = view_of(in.tokens),
                                 .wte = view_of(in.wte),
                                 .wpe = view_of(in.wpe)});
      return out.values();
    });
    // One addition, of which there is only one rounding.
    std::vector<float> used = in.wpe;
    used.resize(static_cast<size_t>(c.time * c.channels));
    expect_same_bits("x", x, naive::embedding(c.time, in.tokens, in.wte, used));
  }
}

// The order of the sums is part of the contract, so the plain loop gives the same bits.
TEST(Embedding, BackwardSumsInPositionOrder) {
  for (const Case& c : kCases) {
    const Inputs in(c);
    const auto dwte = at_any_thread_count(
        "dwte", [&](CpuStream& stream) { return run_backward(stream, c, in).dwte; });
    const auto dwpe = at_any_thread_count(
        "dwpe", [&](CpuStream& stream) { return run_backward(stream, c, in).dwpe; });
    const auto plain = naive::embedding_backward(c.time, c.block_size, in.tokens, in.head, in.dx);
    expect_same_bits("dwte", dwte, plain.dwte);
    expect_same_bits("dwpe", dwpe, plain.dwpe);
    const auto reference = naive::embedding_backward(c.time, c.block_size, in.tokens,
                                                     to_double(in.head), to_double(in.dx));
    expect_close("dwte", dwte, plain.dwte, reference.dwte);
    expect_close("dwpe", dwpe, plain.dwpe, reference.dwpe);
  }
}

TEST(Embedding, BackwardAddsFinishedSums) {
  CpuStream stream;
  for (const Case& c : kCases) {
    const Inputs in(c);
    const Gradient alone = run_backward(stream, c, in);
    const Gradient added = run_backward(stream, c, in, {in.dwte, in.dwpe}, true);
    const auto sum = [](std::vector<float> a, const std::vector<float>& b) {
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] += b[i];
      }
      return a;
    };
    expect_same_bits("dwte", added.dwte, sum(in.dwte, alone.dwte));
    expect_same_bits("dwpe", added.dwpe, sum(in.dwpe, alone.dwpe));
  }
}

}  // namespace
}  // namespace lockstep
