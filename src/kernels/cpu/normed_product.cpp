#include "kernels/normed_product.h"

#include <vector>

#include "kernels/check_size.h"
#include "kernels/gemm.h"
#include "kernels/layernorm.h"

namespace lockstep {

// Mean and rstd come out of layernorm_forward once more; both passes that take them are over rows
// which are in the cache for the third.
void normed_product(CpuStream& stream, const NormedProduct<CpuDevice>& args) {
  check_size("normed_product: normed", args.normed.size(), args.rows * args.in);
  std::vector<float> mean(static_cast<size_t>(args.rows));
  std::vector<float> rstd(static_cast<size_t>(args.rows));
  layernorm_forward(stream, {.rows = args.rows,
                             .channels = args.in,
                             .y = args.normed,
                             .mean = {mean.data(), args.rows},
                             .rstd = {rstd.data(), args.rows},
                             .x = args.x,
                             .gamma = args.gamma,
                             .beta = args.beta});
  gemm(stream, {.m = args.out,
                .n = args.in,
                .k = args.rows,
                .trans_a = Transpose::kYes,
                .a = args.dy,
                .b = args.normed,
                .c = args.c,
                .accumulate = args.accumulate});
}

}  // namespace lockstep
