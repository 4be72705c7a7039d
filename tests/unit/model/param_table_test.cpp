#include "core/model/param_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/base/error.h"

namespace lockstep {
namespace {

GptConfig gpt2_124m() {
  return {.vocab_size = 50257, .block_size = 1024, .n_layer = 12, .n_head = 12, .n_embd = 768};
}

// 50257 symbols pad to 50272 rows, and 3 channels leave gaps behind almost every tensor.
GptConfig ragged() {
  return {.vocab_size = 65, .block_size = 33, .n_layer = 2, .n_head = 3, .n_embd = 15};
}

TEST(ParamTable, CountsTheParametersOfGpt2) {
  EXPECT_EQ(ParamTable(gpt2_124m()).parameter_count(), 124439808);
}

TEST(ParamTable, GivesEveryTensorItsShapeAndDecay) {
  const ParamTable table(gpt2_124m());
  EXPECT_EQ(table.specs().size(), 2U + 12U * 12U + 2U);
  EXPECT_THAT(table.find("wte").shape, testing::ElementsAre(50272, 768));
  EXPECT_EQ(table.find("wte").init_size, 50257 * 768);
  EXPECT_THAT(table.find("wpe").shape, testing::ElementsAre(1024, 768));
  EXPECT_THAT(table.find("h.11.attn.c_attn.weight").shape, testing::ElementsAre(2304, 768));
  EXPECT_THAT(table.find("h.0.mlp.c_proj.weight").shape, testing::ElementsAre(768, 3072));
  for (const ParamSpec& spec : table.specs()) {
    EXPECT_EQ(spec.decay, spec.shape.size() == 2) << spec.name;
    EXPECT_EQ(spec.range.size(), std::accumulate(spec.shape.begin(), spec.shape.end(), int64_t{1},
                                                 std::multiplies<>()))
        << spec.name;
  }
  EXPECT_THROW(table.find("h.12.ln_1.weight"), InternalError);
}

TEST(ParamTable, LaysAlignedTensorsOneBehindTheOther) {
  for (const GptConfig& config : {gpt2_124m(), ragged()}) {
    const ParamTable table(config);
    int64_t end = 0;
    for (const ParamSpec& spec : table.specs()) {
      EXPECT_EQ(spec.range.begin % 64, 0) << spec.name;
      EXPECT_GE(spec.range.begin, end) << spec.name;
      EXPECT_LT(spec.range.begin - end, 64) << spec.name;
      end = spec.range.end;
    }
    EXPECT_GE(table.arena_size(), end);
    EXPECT_LT(table.arena_size() - end, 64);
  }
}

TEST(ParamTable, RangesTileTheArenaInLayerOrder) {
  const GptConfig config = ragged();
  const ParamTable table(config);
  int64_t end = 0;
  std::vector<Range> ranges = {table.embeddings()};
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    ranges.push_back(table.layer(layer));
  }
  ranges.push_back(table.final_norm());
  for (const Range& range : ranges) {
    EXPECT_EQ(range.begin, end);
    end = range.end;
  }
  EXPECT_EQ(end, table.arena_size());
  for (const ParamSpec& spec : table.specs()) {
    const Range home = spec.name.starts_with("h.")  ? table.layer(spec.name[2] - '0')
                       : spec.name.starts_with("w") ? table.embeddings()
                                                    : table.final_norm();
    EXPECT_TRUE(home.begin <= spec.range.begin && spec.range.end <= home.end) << spec.name;
  }
}

TEST(ParamTable, KeepsTensorsOfOneDecayTogetherInALayer) {
  const ParamTable table(gpt2_124m());
  int changes = 0;
  for (size_t i = 1; i < table.specs().size(); ++i) {
    changes += table.specs()[i].decay != table.specs()[i - 1].decay ? 1 : 0;
  }
  EXPECT_EQ(changes, 2 * 12 - 1);
}

TEST(InitialParameters, HaveTheMomentsOfGpt2) {
  GptConfig config = {
      .vocab_size = 1000, .block_size = 256, .n_layer = 4, .n_head = 4, .n_embd = 128};
  const ParamTable table(config);
  const std::vector<float> arena = initial_parameters(table, 1337);
  ASSERT_EQ(static_cast<int64_t>(arena.size()), table.arena_size());
  for (const ParamSpec& spec : table.specs()) {
    double sum = 0;
    double squares = 0;
    for (int64_t e = 0; e < spec.init_size; ++e) {
      const double x = arena[static_cast<size_t>(spec.range.begin + e)];
      sum += x;
      squares += x * x;
    }
    const auto n = static_cast<double>(spec.init_size);
    const bool norm_weight = spec.name.ends_with("ln_1.weight") ||
                             spec.name.ends_with("ln_2.weight") || spec.name == "ln_f.weight";
    const double stddev = !spec.decay                            ? 0.0
                          : spec.name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(8.0)
                                                                 : 0.02;
    const double mean = norm_weight ? 1.0 : 0.0;
    EXPECT_NEAR(sum / n, mean, 5 * stddev / std::sqrt(n)) << spec.name;
    EXPECT_NEAR(std::sqrt(std::max(0.0, squares / n - mean * mean)), stddev, 0.02 * stddev)
        << spec.name;
  }
}

TEST(InitialParameters, AreZeroInPaddingAndGaps) {
  const ParamTable table(ragged());
  std::vector<float> arena = initial_parameters(table, 7);
  for (const ParamSpec& spec : table.specs()) {
    std::fill_n(arena.begin() + spec.range.begin, spec.init_size, 0.0F);
  }
  EXPECT_EQ(std::count(arena.begin(), arena.end(), 0.0F), table.arena_size());
}

TEST(InitialParameters, AreTheFunctionOfSeedTensorAndIndex) {
  const ParamTable table(ragged());
  const std::vector<float> arena = initial_parameters(table, 7);
  int64_t tensor = 0;
  for (const ParamSpec& spec : table.specs()) {
    for (int64_t e = 0; e < spec.range.size(); ++e) {
      ASSERT_EQ(arena[static_cast<size_t>(spec.range.begin + e)], initial_value(spec, 7, tensor, e))
          << spec.name << " " << e;
    }
    ++tensor;
  }
  EXPECT_EQ(arena, initial_parameters(table, 7));
  EXPECT_NE(arena, initial_parameters(table, 8));
  EXPECT_NE(initial_value(table.find("wte"), 7, 0, 0), initial_value(table.find("wpe"), 7, 1, 0));
}

}  // namespace
}  // namespace lockstep
