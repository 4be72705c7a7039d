#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/device/cpu_device.h"
#include "core/model/decoder.h"
#include "gpu/gpu_gpt.h"
#include "unit/model/gradient_check.h"
#include "unit/model/reference_device.h"
#include "unit/model/tiny_gpt.h"

// The model on the GPU against the same body on the CPU, in float and in double.

namespace lockstep {
namespace {

// Heads of 32, as the GPU's attention takes them; a vocabulary and a context that fill no tile.
GptConfig small(Gelu gelu = Gelu::kTanh) {
  return {.vocab_size = 19, .block_size = 9, .n_layer = 2, .n_head = 2, .n_embd = 64, .gelu = gelu};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// max |a - b| / max |b| over a range.
double error_of(const std::vector<float>& a, const std::vector<float>& b, Range range) {
  double largest = 0;
  double difference = 0;
  for (auto i = static_cast<size_t>(range.begin); i < static_cast<size_t>(range.end); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    const double one = std::abs(static_cast<double>(a[i]) - b[i]);
    difference = std::isfinite(one) ? std::max(difference, one) : one;
  }
  return difference / largest;
}

// As on the CPU.
TEST(GpuGradientCheck, EveryTensorAgreesInFp32) {
  for (const Gelu gelu : {Gelu::kTanh, Gelu::kErf}) {
    CudaStream stream(Precision::kFp32);
    GpuGpt gpt(stream, small(gelu), 2, 9);
    const std::vector<float> gradients = gpt.new_gradients();
    for (const TensorError& error : directional_errors(gpt, formula_parameters(gpt.table),
                                                       gradients, [&] { return gpt.evaluate(); })) {
      EXPECT_LT(error.relative, 2e-4) << error.name;
    }
  }
}

// The slope is measured in fp32, since a loss in tf32 moves in steps as large as the difference;
// factors that are rounded to 2^-11 turn a gradient by about that, of which its length along the
// true one loses much less.
TEST(GpuGradientCheck, EveryTensorAgreesInTf32) {
  CudaStream tf32(Precision::kTf32);
  CudaStream fp32(Precision::kFp32);
  GpuGpt gpt(tf32, small(), 2, 9);
  GpuGpt exact(fp32, small(), 2, 9);
  const std::vector<float> gradients = gpt.new_gradients();
  for (const TensorError& error : directional_errors(exact, formula_parameters(gpt.table),
                                                     gradients, [&] { return exact.evaluate(); })) {
    EXPECT_LT(error.relative, 1e-3) << error.name;
  }
}

struct Results {
  std::vector<float> loss;
  std::vector<float> logits;
  std::vector<float> gradients;
};

template <class Device>
Results results_of(const GptConfig& config, int64_t batch) {
  TinyGpt<Device> gpt(config, batch, config.block_size);
  typename Device::Stream stream;
  Results results;
  results.loss = {gpt.forward(stream)};
  gpt.model.backward(stream, false, {});
  results.gradients = gpt.gradient_values();
  return results;
}

Results results_on_gpu(const GptConfig& config, int64_t batch, Precision precision) {
  CudaStream stream(precision);
  GpuGpt gpt(stream, config, batch, config.block_size);
  Results results;
  results.logits = gpt.logits();
  results.loss = {gpt.forward()};
  gpt.backward();
  results.gradients = gpt.gradient_values();
  return results;
}

std::vector<float> cpu_logits(const GptConfig& config, int64_t batch) {
  TinyGpt<CpuDevice> gpt(config, batch, config.block_size);
  CpuStream stream;
  const auto logits = gpt.model.logits(stream, gpt.tokens.view());
  return {logits.begin(), logits.end()};
}

// Against the formulas in double: twice the error of the CPU's floats, which add up in another
// order, and never less than a few roundings of the largest value.
TEST(GpuModel, HasTheErrorOfFloatsInFp32) {
  GptConfig config = small();
  config.vocab_size = 65;
  config.block_size = 33;
  const ParamTable table(config);
  const Results reference = results_of<ReferenceDevice>(config, 3);
  const Results cpu = results_of<CpuDevice>(config, 3);
  const Results gpu = results_on_gpu(config, 3, Precision::kFp32);
  EXPECT_NEAR(gpu.loss[0], reference.loss[0], 2e-6);
  for (const ParamSpec& spec : table.specs()) {
    const double floats = error_of(cpu.gradients, reference.gradients, spec.range);
    EXPECT_LT(error_of(gpu.gradients, reference.gradients, spec.range), std::max(2 * floats, 2e-6))
        << spec.name;
  }
  const std::vector<float> logits = cpu_logits(config, 3);
  EXPECT_LT(error_of(gpu.logits, logits, {0, static_cast<int64_t>(logits.size())}), 4e-6);
}

// Each factor of each product is off by 2^-12 on average; a dozen products follow each other.
TEST(GpuModel, HasTheErrorOfItsFactorsInTf32) {
  GptConfig config = small();
  config.vocab_size = 65;
  config.block_size = 33;
  const ParamTable table(config);
  const Results reference = results_of<ReferenceDevice>(config, 3);
  const Results gpu = results_on_gpu(config, 3, Precision::kTf32);
  EXPECT_NEAR(gpu.loss[0], reference.loss[0], 2e-3);
  double most = 0;
  for (const ParamSpec& spec : table.specs()) {
    const double error = error_of(gpu.gradients, reference.gradients, spec.range);
    EXPECT_LT(error, 1e-2) << spec.name;
    most = std::max(most, error);
  }
  EXPECT_GT(most, 2e-6) << "the products were not in tf32";
}

TEST(GpuModel, RepeatsItsBits) {
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    GptConfig config = small();
    config.block_size = 70;
    const Results first = results_on_gpu(config, 4, precision);
    const Results second = results_on_gpu(config, 4, precision);
    EXPECT_TRUE(same_bits(first.gradients, second.gradients));
    EXPECT_TRUE(same_bits(first.logits, second.logits));
    EXPECT_TRUE(same_bits(first.loss, second.loss));
  }
}

// What lets one rank with two micro-batches and two ranks with one each give the same bits.
TEST(GpuModel, AccumulatesFinishedMicroGradients) {
  CudaStream stream(Precision::kTf32);
  const GptConfig config = small();
  GpuGpt gpt(stream, config, 2, 9);
  const std::vector<int32_t> tokens = formula_tokens("tokens", config.vocab_size, 2 * 18 + 1);
  const auto batch = [&](int64_t half) {
    const auto begin = tokens.begin() + half * 18;
    gpt.set_batch({begin, begin + 18}, {begin + 1, begin + 19});
  };
  batch(0);
  const std::vector<float> first = gpt.new_gradients();
  batch(1);
  const std::vector<float> second = gpt.new_gradients();
  batch(0);
  gpt.new_gradients();
  batch(1);
  gpt.forward();
  gpt.backward(true);
  std::vector<float> sums(first.size());
  std::transform(first.begin(), first.end(), second.begin(), sums.begin(),
                 [](float a, float b) { return a + b; });
  EXPECT_FALSE(same_bits(first, second));
  EXPECT_TRUE(same_bits(gpt.gradient_values(), sums));
}

TEST(GpuModel, EvaluatesToTheLossOfForward) {
  CudaStream stream(Precision::kTf32);
  GpuGpt gpt(stream, small(), 2, 9);
  const float loss = gpt.forward();
  EXPECT_EQ(gpt.evaluate(), loss);
}

TEST(GpuDecoder, EqualsTheModelPastTheBlock) {
  GptConfig config = small();
  config.block_size = 8;
  TinyGpt<CpuDevice> cpu(config, 1, 8);
  CpuStream cpu_stream;
  Decoder<CpuDevice> expected(config, cpu.parameters.view());
  CudaStream stream;
  GpuGpt gpu(stream, config, 1, 8);
  Decoder<CudaDevice> decoder(config, gpu.parameters());
  std::vector<float> logits(static_cast<size_t>(config.vocab_size));
  for (const int32_t token : formula_tokens("tokens", config.vocab_size, 20)) {
    const auto want = expected.step(cpu_stream, token);
    copy_to_host(stream, logits.data(), decoder.step(stream, token));
    stream.synchronize();
    for (size_t v = 0; v < logits.size(); ++v) {
      ASSERT_NEAR(logits[v], want[static_cast<int64_t>(v)], 1e-5) << v;
    }
  }
}

}  // namespace
}  // namespace lockstep
