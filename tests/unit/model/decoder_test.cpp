#include "core/model/decoder.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/device/cpu_device.h"
#include "unit/model/tiny_gpt.h"

namespace lockstep {
namespace {

GptConfig small(int64_t block_size) {
  return {.vocab_size = 65, .block_size = block_size, .n_layer = 2, .n_head = 3, .n_embd = 48};
}

/// The logits of what follows `context`, from the whole context at once.
std::vector<float> logits_behind(TinyGpt<CpuDevice>& gpt, CpuStream& stream,
                                 std::vector<int32_t> context) {
  const auto all = gpt.model.logits(stream, {context.data(), static_cast<int64_t>(context.size())});
  const auto row = all.end() - gpt.model.config().padded_vocab();
  return {row, row + gpt.model.config().vocab_size};
}

void expect_near(CpuView<const float> logits, const std::vector<float>& expected, size_t step) {
  ASSERT_EQ(logits.size(), static_cast<int64_t>(expected.size()));
  for (int64_t v = 0; v < logits.size(); ++v) {
    ASSERT_NEAR(logits[v], expected[static_cast<size_t>(v)], 1e-5) << "token " << step;
  }
}

TEST(Decoder, EqualsTheModelAtEveryPosition) {
  TinyGpt<CpuDevice> gpt(small(33), 1, 33);
  Decoder<CpuDevice> decoder(gpt.model.config(), gpt.parameters.view());
  CpuStream stream;
  const std::vector<int32_t> tokens = formula_tokens("tokens", 65, 33);
  for (size_t i = 0; i < tokens.size(); ++i) {
    expect_near(
        decoder.step(stream, tokens[i]),
        logits_behind(gpt, stream, {tokens.begin(), tokens.begin() + static_cast<int64_t>(i) + 1}),
        i);
  }
}

// When the block is full its last half moves to the front, again and again.
TEST(Decoder, MovesTheWindowPastTheBlock) {
  for (const int64_t block : {int64_t{8}, int64_t{7}, int64_t{1}}) {
    TinyGpt<CpuDevice> gpt(small(block), 1, block);
    Decoder<CpuDevice> decoder(gpt.model.config(), gpt.parameters.view());
    CpuStream stream;
    const std::vector<int32_t> tokens = formula_tokens("tokens", 65, 30);
    std::vector<int32_t> context;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (static_cast<int64_t>(context.size()) == block) {
        context.erase(context.begin(), context.end() - block / 2);
      }
      context.push_back(tokens[i]);
      expect_near(decoder.step(stream, tokens[i]), logits_behind(gpt, stream, context), i);
    }
  }
}

}  // namespace
}  // namespace lockstep
