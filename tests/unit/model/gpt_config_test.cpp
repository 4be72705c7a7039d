#include "core/model/gpt_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/base/error.h"

namespace lockstep {
namespace {

struct BadConfig {
  std::string what;
  std::function<void(GptConfig&)> break_it;
  std::vector<std::string> words;  ///< that the message must hold
};

TEST(GptConfig, RefusesEveryBadValueByNameAndRule) {
  const std::vector<BadConfig> cases = {
      {"no vocabulary", [](GptConfig& c) { c.vocab_size = 0; }, {"vocabulary has 0", "at least 1"}},
      {"vocabulary past 32 bits",
       [](GptConfig& c) { c.vocab_size = int64_t{1} << 31; },
       {"2147483648", "32-bit"}},
      {"block", [](GptConfig& c) { c.block_size = 0; }, {"--block-size 0", "at least 1"}},
      {"long block", [](GptConfig& c) { c.block_size = int64_t{1} << 40; }, {"--block-size"}},
      {"layers", [](GptConfig& c) { c.n_layer = -3; }, {"--n-layer -3", "at least 1"}},
      {"many layers", [](GptConfig& c) { c.n_layer = 1000000; }, {"--n-layer", "at most 4096"}},
      {"heads", [](GptConfig& c) { c.n_head = 0; }, {"--n-head 0", "at least 1"}},
      {"channels", [](GptConfig& c) { c.n_embd = -128; }, {"--n-embd -128", "at least 1"}},
      {"division",
       [](GptConfig& c) { c.n_head = 5; },
       {"--n-embd 384", "--n-head 5", "not divisible"}},
      {"gelu", [](GptConfig& c) { c.gelu = static_cast<Gelu>(7); }, {"--gelu", "tanh and erf"}}};
  for (const BadConfig& bad : cases) {
    GptConfig config = {.vocab_size = 65};
    bad.break_it(config);
    try {
      config.validate();
      ADD_FAILURE() << bad.what << " was accepted";
    } catch (const UsageError& error) {
      for (const std::string& word : bad.words) {
        EXPECT_THAT(error.what(), testing::HasSubstr(word)) << bad.what;
      }
    }
  }
}

TEST(GptConfig, AcceptsTheSmallestAndTheUsualModels) {
  EXPECT_NO_THROW(
      (GptConfig{.vocab_size = 1, .block_size = 1, .n_layer = 1, .n_head = 1, .n_embd = 1}
           .validate()));
  EXPECT_NO_THROW(GptConfig{.vocab_size = 65}.validate());
  EXPECT_NO_THROW((GptConfig{
      .vocab_size = 50257, .block_size = 1024, .n_layer = 48, .n_head = 25, .n_embd = 1600}
                       .validate()));
}

TEST(GptConfig, PadsTheVocabularyToCacheLines) {
  EXPECT_EQ(GptConfig{.vocab_size = 65}.padded_vocab(), 80);
  EXPECT_EQ(GptConfig{.vocab_size = 64}.padded_vocab(), 64);
}

}  // namespace
}  // namespace lockstep
