#include "gemm_shapes.h"

#include "bench_model.h"

namespace lockstep {

std::string GemmShape::transposes() const {
  return std::string(trans_a == Transpose::kYes ? "T" : "N") +
         (trans_b == Transpose::kYes ? "T" : "N");
}

std::vector<GemmShape> model_gemm_shapes(std::string_view model) {
  const BenchModel shape = bench_model(model);
  const int64_t rows = shape.tokens();
  const int64_t width = shape.config.n_embd;
  struct Linear {
    std::string name;
    int64_t in;
    int64_t out;
  };
  std::vector<GemmShape> shapes;
  for (const auto& [name, in, out] :
       {Linear{"qkv", width, 3 * width}, Linear{"attn proj", width, width},
        Linear{"fc", width, 4 * width}, Linear{"fc proj", 4 * width, width},
        Linear{"head", width, shape.config.padded_vocab()}}) {
    shapes.push_back({name + " forward", rows, out, in, Transpose::kNo, Transpose::kYes});
    shapes.push_back({name + " dX", rows, in, out, Transpose::kNo, Transpose::kNo});
    shapes.push_back({name + " dW", out, in, rows, Transpose::kYes, Transpose::kNo});
  }
  return shapes;
}

std::vector<GemmShape> gemm_shapes(int64_t m, int64_t n, int64_t k, std::string_view transposes) {
  std::vector<GemmShape> shapes;
  for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
      const GemmShape shape = {"", m, n, k, trans_a, trans_b};
      if (transposes == "all" || transposes == shape.transposes()) {
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

}  // namespace lockstep
