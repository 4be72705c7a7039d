#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "support/naive_gemm.h"

namespace lockstep {
namespace {

using naive::GemmOperands;

// Normal values; drawn once, since there are more operands than values worth drawing.
std::vector<float> normal(int64_t size, uint64_t stream) {
  constexpr size_t kPool = 65521;
  static const std::vector<float> pool = [] {
    std::vector<float> drawn;
    for (size_t i = 0; i < kPool; ++i) {
      drawn.push_back(static_cast<float>(random_normal(7, 0, i)));
    }
    return drawn;
  }();
  std::vector<float> values;
  for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
    values.push_back(pool[(i + stream * 9973) % kPool]);
  }
  return values;
}

GemmOperands operands(int64_t m, int64_t n, int64_t k, Transpose trans_a = Transpose::kNo,
                      Transpose trans_b = Transpose::kNo) {
  GemmOperands in;
  in.m = m;
  in.n = n;
  in.k = k;
  in.trans_a = trans_a;
  in.trans_b = trans_b;
  in.a = normal(m * k, 0);
  in.b = normal(k * n, 1);
  return in;
}

// Memory of a result, poisoned: an element that is not written, or one outside that is, shows.
class Output {
 public:
  explicit Output(int64_t size)
      : memory_(static_cast<size_t>(size + 2 * kGuard), kPoison), size_(size) {}
  CpuView<float> view() { return {memory_.data() + kGuard, size_}; }
  std::vector<float> values() const {
    return {memory_.begin() + kGuard, memory_.begin() + kGuard + size_};
  }
  bool guards_intact() const {
    const auto is_poison = [](float x) { return x == kPoison; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, is_poison) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), is_poison);
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr float kPoison = -3.0e37F;
  std::vector<float> memory_;
  int64_t size_;
};

CpuView<const float> view_of(const std::vector<float>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

naive::GemmResult<float> run(const GemmOperands& in, int threads = 1, bool residual_is_c = false) {
  CpuStream stream(threads);
  Output c(in.m * in.n);
  Output slope(in.gelu_derivative ? in.m * in.n : 0);
  std::copy(in.accumulated.begin(), in.accumulated.end(), c.view().begin());
  if (residual_is_c) {
    std::copy(in.residual.begin(), in.residual.end(), c.view().begin());
  }
  Gemm<CpuDevice> problem;
  problem.m = in.m;
  problem.n = in.n;
  problem.k = in.k;
  problem.trans_a = in.trans_a;
  problem.trans_b = in.trans_b;
  problem.a = view_of(in.a);
  problem.b = view_of(in.b);
  problem.c = c.view();
  problem.accumulate = !in.accumulated.empty();
  problem.bias = view_of(in.bias);
  problem.residual = residual_is_c ? CpuView<const float>(c.view()) : view_of(in.residual);
  problem.gelu = in.gelu;
  problem.gelu_derivative = slope.view();
  problem.factor = view_of(in.factor);
  gemm(stream, problem);
  EXPECT_TRUE(c.guards_intact()) << "wrote outside c";
  EXPECT_TRUE(slope.guards_intact()) << "wrote outside gelu_derivative";
  return {c.values(), slope.values()};
}

// max |out - ref| / max |ref|; infinite when a value is not finite or sizes differ.
double error_of(const std::vector<float>& out, const std::vector<double>& reference) {
  if (out.size() != reference.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double worst = 0;
  double largest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double error = std::abs(static_cast<double>(out[i]) - reference[i]);
    worst = error <= worst ? worst : error;  // keeps a NaN
    largest = std::max(largest, std::abs(reference[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

// Twice the error of the plain float implementation, and one rounding of the largest value: a
// result of few operations may be exact by luck.
double tolerance(const std::vector<float>& plain, const std::vector<double>& reference) {
  return 2 * error_of(plain, reference) +
         static_cast<double>(std::numeric_limits<float>::epsilon());
}

struct Products {
  std::vector<double> reference;
  std::vector<float> plain;

  explicit Products(const GemmOperands& in)
      : reference(naive::gemm_product<double>(in)), plain(naive::gemm_product<float>(in)) {}
};

void expect_matches_reference(const GemmOperands& in, const Products& products,
                              bool residual_is_c = false) {
  const auto reference = naive::gemm_epilogue(in, products.reference);
  const auto plain = naive::gemm_epilogue(in, products.plain);
  const auto out = run(in, 1, residual_is_c);
  EXPECT_LE(error_of(out.c, reference.c), tolerance(plain.c, reference.c));
  EXPECT_LE(error_of(out.gelu_derivative, reference.gelu_derivative),
            tolerance(plain.gelu_derivative, reference.gelu_derivative));
}

std::string name(const GemmOperands& in) {
  return std::string(in.trans_a == Transpose::kYes ? "T" : "N") +
         (in.trans_b == Transpose::kYes ? "T" : "N") + " m=" + std::to_string(in.m) +
         " n=" + std::to_string(in.n) + " k=" + std::to_string(in.k);
}

struct Sizes {
  int64_t m;
  int64_t n;
  int64_t k;
};

template <class Body>
void for_each_transpose(const Sizes& sizes, const Body& body) {
  for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
      const GemmOperands in = operands(sizes.m, sizes.n, sizes.k, trans_a, trans_b);
      SCOPED_TRACE(name(in));
      body(in);
    }
  }
}

TEST(Gemm, EveryTransposeAtEverySize) {
  const std::vector<int64_t> edges = {0, 1, 3, 16, 33, 65};
  for (const int64_t m : edges) {
    for (const int64_t n : edges) {
      for (const int64_t k : edges) {
        for_each_transpose(
            {m, n, k}, [](const GemmOperands& in) { expect_matches_reference(in, Products(in)); });
      }
    }
  }
}

TEST(Gemm, SizesAroundBlocks) {
  for (const Sizes sizes : {Sizes{127, 129, 65},
                            {70, 127, 1000},
                            {1000, 65, 33},
                            {65, 1000, 129},
                            {5, 7, 2500},
                            {40, 600, 700}}) {
    for_each_transpose(sizes,
                       [](const GemmOperands& in) { expect_matches_reference(in, Products(in)); });
  }
}

// (rows, columns) as (columns, rows).
std::vector<float> transposed(const std::vector<float>& matrix, int64_t rows, int64_t columns) {
  std::vector<float> result(matrix.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      result[static_cast<size_t>(j * rows + i)] = matrix[static_cast<size_t>(i * columns + j)];
    }
  }
  return result;
}

// Shapes with several blocks in every direction, too large for the loops of the reference: their
// rows are products of their own, and these are small enough to be covered above.
TEST(Gemm, LargeProductsEqualTheirRowsBitByBit) {
  for (const Sizes sizes : {Sizes{1100, 1008, 600}, {700, 1700, 520}, {700, 1681, 400}}) {
    const GemmOperands whole = operands(sizes.m, sizes.n, sizes.k);
    const std::vector<float> c = run(whole).c;
    for (const auto& [first, last] : {std::pair{0L, 300L}, {300L, 317L}, {317L, sizes.m}}) {
      GemmOperands rows = whole;
      rows.m = last - first;
      rows.a = {whole.a.begin() + first * whole.k, whole.a.begin() + last * whole.k};
      const std::vector<float> expected(c.begin() + first * whole.n, c.begin() + last * whole.n);
      EXPECT_EQ(run(rows).c, expected) << name(whole) << " rows " << first << " to " << last;
    }
    for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
      for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
        GemmOperands other = whole;
        other.trans_a = trans_a;
        other.trans_b = trans_b;
        other.a = trans_a == Transpose::kYes ? transposed(whole.a, whole.m, whole.k) : whole.a;
        other.b = trans_b == Transpose::kYes ? transposed(whole.b, whole.k, whole.n) : whole.b;
        EXPECT_EQ(run(other).c, c) << name(other);
      }
    }
  }
}

struct Epilogue {
  std::string name;
  bool bias = false;
  bool residual = false;
  bool residual_is_c = false;
  bool gelu = false;
  bool gelu_derivative = false;
  bool factor = false;
  bool accumulate = false;
};

GemmOperands with_epilogue(GemmOperands in, const Epilogue& epilogue, Gelu form) {
  const int64_t size = in.m * in.n;
  in.gelu = epilogue.gelu ? std::optional(form) : std::nullopt;
  in.gelu_derivative = epilogue.gelu_derivative;
  in.bias = epilogue.bias ? normal(in.n, 2) : std::vector<float>();
  in.residual = epilogue.residual ? normal(size, 3) : std::vector<float>();
  in.factor = epilogue.factor ? normal(size, 4) : std::vector<float>();
  in.accumulated = epilogue.accumulate ? normal(size, 5) : std::vector<float>();
  return in;
}

std::vector<Epilogue> epilogues() {
  return {
      {.name = "bias", .bias = true},
      {.name = "residual", .residual = true},
      {.name = "bias, residual", .bias = true, .residual = true},
      {.name = "bias, residual in c", .bias = true, .residual = true, .residual_is_c = true},
      {.name = "gelu", .gelu = true},
      {.name = "bias, gelu and derivative", .bias = true, .gelu = true, .gelu_derivative = true},
      {.name = "factor", .factor = true},
      {.name = "accumulate", .accumulate = true},
      {.name = "factor, accumulate", .factor = true, .accumulate = true},
      {.name = "all",
       .bias = true,
       .residual = true,
       .gelu = true,
       .gelu_derivative = true,
       .factor = true,
       .accumulate = true}};
}

TEST(Gemm, EveryEpilogue) {
  for (const Sizes sizes :
       {Sizes{3, 5, 7}, {65, 127, 33}, {70, 83, 1601}, {17, 9, 2100}, {9, 40, 0}}) {
    for_each_transpose(sizes, [](const GemmOperands& plain) {
      const Products products(plain);
      for (const Epilogue& epilogue : epilogues()) {
        for (const Gelu form : {Gelu::kTanh, Gelu::kErf}) {
          SCOPED_TRACE(epilogue.name + (form == Gelu::kErf ? " erf" : " tanh"));
          expect_matches_reference(with_epilogue(plain, epilogue, form), products,
                                   epilogue.residual_is_c);
        }
      }
    });
  }
}

TEST(Gemm, AccumulatingEqualsProductThenAddBitByBit) {
  for (const Sizes sizes : {Sizes{65, 80, 129}, {40, 129, 3000}, {400, 330, 1200}}) {
    for_each_transpose(sizes, [](const GemmOperands& in) {
      GemmOperands added = in;
      added.accumulated = normal(in.m * in.n, 5);
      std::vector<float> expected = run(in).c;
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = added.accumulated[i] + expected[i];
      }
      EXPECT_EQ(run(added).c, expected);
    });
  }
}

TEST(Gemm, BitsDoNotDependOnThreads) {
  const Epilogue epilogue = {
      .name = "bias, gelu", .bias = true, .gelu = true, .gelu_derivative = true};
  for (const Sizes sizes :
       {Sizes{129, 130, 127}, {80, 128, 4099}, {1000, 33, 65}, {65, 1000, 129}}) {
    for_each_transpose(sizes, [&](const GemmOperands& plain) {
      const GemmOperands in = with_epilogue(plain, epilogue, Gelu::kTanh);
      const auto one = run(in, 1);
      for (const int threads : {2, 3, 5}) {
        const auto several = run(in, threads);
        EXPECT_EQ(several.c, one.c) << threads;
        EXPECT_EQ(several.gelu_derivative, one.gelu_derivative) << threads;
      }
    });
  }
}

TEST(Gemm, SeveralStreamsAtATime) {
  const GemmOperands in = operands(80, 128, 2100, Transpose::kYes);
  const std::vector<float> expected = run(in).c;
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&in, &result] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        result = run(in, 2).c;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& result : results) {
    EXPECT_EQ(result, expected);
  }
}

TEST(Gemm, NonFiniteOperandsReachTheirRowsAlone) {
  GemmOperands in = operands(20, 40, 30);
  in.a[3 * 30 + 5] = std::numeric_limits<float>::quiet_NaN();
  in.b[2 * 40 + 39] = std::numeric_limits<float>::infinity();
  const std::vector<float> c = run(in).c;
  for (int64_t i = 0; i < in.m; ++i) {
    for (int64_t j = 0; j < in.n; ++j) {
      EXPECT_EQ(std::isfinite(c[static_cast<size_t>(i * in.n + j)]), i != 3 && j != 39);
    }
  }
}

TEST(Gemm, RefusesViewsThatAreTooSmall) {
  GemmOperands in = operands(4, 5, 6);
  in.a.pop_back();
  EXPECT_THROW(run(in), InternalError);
  in = operands(4, 5, 6);
  in.b.pop_back();
  EXPECT_THROW(run(in), InternalError);
  in = operands(4, 5, 6);
  in.bias = normal(4, 2);
  EXPECT_THROW(run(in), InternalError);
  in.bias = normal(5, 2);
  in.factor = normal(19, 3);
  EXPECT_THROW(run(in), InternalError);
  in.factor = {};
  in.gelu_derivative = true;  // without gelu
  EXPECT_THROW(run(in), InternalError);
}

}  // namespace
}  // namespace lockstep
