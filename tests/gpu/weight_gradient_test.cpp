// The gradients of a linear layer's weight and bias on the GPU, against the products and sums that
// they are made of.
#include "kernels/cuda/gemm/weight_gradient.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device/cuda_device.h"
#include "gpu/every_plan.h"
#include "gpu/gemm_cases.h"
#include "gpu/guarded.h"
#include "kernels/cuda/gemm/planned_gemm.h"
#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

// The parts that a weight gradient is made of, in the memory of one case.
struct WeightGradientCase {
  WeightGradientCase(CudaStream& stream, const Size& size)
      : x(stream, normal(size.k * size.n, 1)),
        gamma(stream, normal(size.n, 2)),
        beta(stream, normal(size.n, 3)),
        mean(stream, size.k),
        rstd(stream, size.k),
        y(stream, size.k * size.n),
        memory(stream, size.k * size.n) {
    layernorm_forward(stream, {.rows = size.k,
                               .channels = size.n,
                               .y = y.view(),
                               .mean = mean.view(),
                               .rstd = rstd.view(),
                               .x = x.view(),
                               .gamma = gamma.view(),
                               .beta = beta.view()});
  }
  NormedRows<CudaDevice> norm() {
    return {mean.view(), rstd.view(), gamma.view(), beta.view(), memory.view()};
  }

  Guarded<float> x, gamma, beta, mean, rstd, y, memory;
};

std::vector<double> column_sums(const std::vector<float>& dy, std::vector<double> sums) {
  for (size_t i = 0; i < dy.size(); ++i) {
    sums[i % sums.size()] += static_cast<double>(dy[i]);
  }
  return sums;
}

// By every plan, its parts among them, the product has the bits of gemm by that plan of the norm's
// output, were it kept. The bias is the sum of dy, in whatever order.
TEST(GpuWeightGradient, EqualsItsParts) {
  require_cuda_device();
  for (const Size& size : {Size{384, 128, 4096}, Size{132, 68, 260}, Size{7, 9, 33}}) {
    const std::vector<float> dy = normal(size.k * size.m, 0);
    const std::vector<float> weight = normal(size.m * size.n, 5);
    const std::vector<float> bias = normal(size.m, 6);
    for (const Precision precision : kPrecisions) {
      CudaStream stream(precision);
      WeightGradientCase in(stream, size);
      Guarded gradient(stream, dy);
      Guarded got(stream, weight);
      Guarded sums(stream, bias);
      for (const unsigned features : {0U, 1U, 2U, 3U}) {
        const bool accumulate = (features & 1U) != 0;
        WeightGradient<CudaDevice> args = {.rows = size.k,
                                           .in = size.n,
                                           .out = size.m,
                                           .weight = got.view(),
                                           .bias = sums.view(),
                                           .dy = gradient.view(),
                                           .x = in.x.view(),
                                           .accumulate = accumulate};
        if ((features & 2U) != 0) {
          args.norm = in.norm();
        }
        for (const GemmPlan& plan : every_plan(product_of(args), stream)) {
          SCOPED_TRACE(std::string(kernel_facts(plan.kernel).name) + " slices " +
                       std::to_string(plan.slices) + " parts " + std::to_string(plan.part_k) +
                       " features " + std::to_string(features) + (plan.swapped ? " swapped" : ""));
          Guarded wanted(stream, weight);
          Gemm<CudaDevice> product = product_of(args);
          product.b = args.norm ? in.y.view() : in.x.view();
          product.c = wanted.view();
          gemm_by_plan(stream, product, plan);
          copy_from_host(stream, got.view(), weight.data());
          copy_from_host(stream, sums.view(), bias.data());
          weight_gradient_by_plan(stream, args, plan);
          EXPECT_EQ(got.values(), wanted.values());
          std::vector<double> start(bias.size());
          if (accumulate) {
            start.assign(bias.begin(), bias.end());
          }
          EXPECT_LE(error(sums.values(), column_sums(dy, start)), 2e-6);
        }
      }
    }
  }
}

TEST(GpuWeightGradient, OfALayerWithoutInputsHasABias) {
  require_cuda_device();
  CudaStream stream;
  Guarded gradient(stream, std::vector<float>{1, 2, 3, 4, 5, 6});
  Guarded<float> bias(stream, 3);
  WeightGradient<CudaDevice> args;
  args.rows = 2;
  args.out = 3;
  args.bias = bias.view();
  args.dy = gradient.view();
  weight_gradient(stream, args);
  EXPECT_EQ(bias.values(), (std::vector<float>{5, 7, 9}));
}

// Where the norm's output has a place that is not aligned, though all else is.
TEST(GpuWeightGradient, NeedsNoAlignedMemory) {
  require_cuda_device();
  const Size size = {128, 64, 256};
  const std::vector<float> dy = normal(size.k * size.m, 0);
  for (const Precision precision : kPrecisions) {
    CudaStream stream(precision);
    WeightGradientCase in(stream, size);
    Guarded memory(stream, in.y.values(), 1);
    Guarded gradient(stream, dy);
    Guarded<float> weight(stream, size.m * size.n);
    Guarded<float> bias(stream, size.m);
    NormedRows<CudaDevice> norm = in.norm();
    norm.memory = memory.view();
    weight_gradient(stream, {.rows = size.k,
                             .in = size.n,
                             .out = size.m,
                             .weight = weight.view(),
                             .bias = bias.view(),
                             .dy = gradient.view(),
                             .x = in.x.view(),
                             .norm = norm});
    Guarded<float> wanted(stream, size.m * size.n);
    gemm(stream, {.m = size.m,
                  .n = size.n,
                  .k = size.k,
                  .trans_a = Transpose::kYes,
                  .a = gradient.view(),
                  .b = in.y.view(),
                  .c = wanted.view()});
    const std::vector<float> wanted_values = wanted.values();
    EXPECT_LE(error(weight.values(), {wanted_values.begin(), wanted_values.end()}), 2e-3);
  }
}

}  // namespace
}  // namespace lockstep
