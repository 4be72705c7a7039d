// The references themselves: every backward against central differences of its forward, in double.
#include "support/naive_ops.h"

#include <gtest/gtest.h>

#include "support/op_check.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;

Values normals(int64_t size, uint64_t seed) {
  return to_double(normal_values(size, seed));
}

TEST(NaiveOps, GeluDerivativeIsTheDerivative) {
  const Values x = normals(40, 1);
  const Values weight = normals(40, 2);
  for (const Gelu form : {Gelu::kTanh, Gelu::kErf}) {
    const auto loss = [&](const Values& at) { return dot(weight, naive::gelu(form, at)); };
    Values gradient = naive::gelu_derivative(form, x);
    for (size_t i = 0; i < x.size(); ++i) {
      gradient[i] *= weight[i];
    }
    expect_gradient("gelu", loss, x, gradient);
  }
}

TEST(NaiveOps, LayerNormBackwardIsTheDerivative) {
  constexpr int64_t kChannels = 7;
  const Values x = normals(3 * kChannels, 1);
  const Values gamma = normals(kChannels, 2);
  const Values beta = normals(kChannels, 3);
  const Values weight = normals(3 * kChannels, 4);
  const auto grad = naive::layernorm_backward(weight, x, gamma);
  const auto loss = [&](const Values& x_at, const Values& gamma_at, const Values& beta_at) {
    return dot(weight, naive::layernorm(x_at, gamma_at, beta_at).y);
  };
  expect_gradient(
      "x", [&](const Values& at) { return loss(at, gamma, beta); }, x, grad.dx);
  expect_gradient(
      "gamma", [&](const Values& at) { return loss(x, at, beta); }, gamma, grad.dgamma);
  expect_gradient(
      "beta", [&](const Values& at) { return loss(x, gamma, at); }, beta, grad.dbeta);
}

TEST(NaiveOps, AttentionBackwardIsTheDerivative) {
  const AttentionShape shape{.batch = 2, .time = 5, .heads = 2, .head_dim = 3};
  const Values qkv = normals(2 * 5 * 3 * 6, 1);
  const Values weight = normals(2 * 5 * 6, 2);
  const auto loss = [&](const Values& at) { return dot(weight, naive::attention(shape, at).out); };
  expect_gradient("qkv", loss, qkv, naive::attention_backward(shape, weight, qkv));
}

TEST(NaiveOps, CrossEntropyGradientIsTheDerivative) {
  constexpr int64_t kVocabulary = 5;
  const std::vector<int32_t> targets = {4, 0, 2};
  const Values logits = normals(3 * 7, 1);
  constexpr double kScale = 0.25;
  const auto loss = [&](const Values& at) {
    double total = 0;
    for (const double l : naive::cross_entropy(kVocabulary, kScale, at, targets).losses) {
      total += kScale * l;
    }
    return total;
  };
  expect_gradient("logits", loss, logits,
                  naive::cross_entropy(kVocabulary, kScale, logits, targets).dlogits);
}

TEST(NaiveOps, EmbeddingBackwardIsTheDerivative) {
  constexpr int64_t kTime = 3;
  constexpr int64_t kChannels = 2;
  const std::vector<int32_t> tokens = {3, 0, 3, 1, 3, 0};
  const Values wte = normals(4 * kChannels, 1);
  const Values wpe = normals(kTime * kChannels, 2);
  const Values weight = normals(6 * kChannels, 3);
  const auto grad = naive::embedding_backward(kTime, kTime, tokens, Values(4 * kChannels), weight);
  const auto loss = [&](const Values& wte_at, const Values& wpe_at) {
    return dot(weight, naive::embedding(kTime, tokens, wte_at, wpe_at));
  };
  expect_gradient(
      "wte", [&](const Values& at) { return loss(at, wpe); }, wte, grad.dwte);
  expect_gradient(
      "wpe", [&](const Values& at) { return loss(wte, at); }, wpe, grad.dwpe);
}

}  // namespace
}  // namespace lockstep
