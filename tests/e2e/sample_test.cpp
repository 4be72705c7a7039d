// sample as a user runs it, on checkpoints that are made here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_store.h"
#include "core/data/tokenizer.h"
#include "core/data/utf8.h"
#include "core/device/cpu_device.h"
#include "core/model/gpt.h"
#include "core/model/param_table.h"
#include "support/temporary_folder.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// A checkpoint of a small untrained model.
class SampleTest : public testing::Test {
 protected:
  static constexpr int64_t kBlock = 32;

  /// `claim`: what the checkpoint says of its model, where that is not the truth.
  void save(int64_t vocabulary, const std::string& tokenizer_json,
            const GptConfig* claim = nullptr) {
    config_ = {
        .vocab_size = vocabulary, .block_size = kBlock, .n_layer = 2, .n_head = 2, .n_embd = 16};
    const ParamTable table(config_);
    parameters_ = initial_parameters(table, 5);
    // Wide logits: an untrained model's are nearly equal.
    std::for_each(parameters_.begin(), parameters_.end(), [](float& value) { value *= 8; });
    std::vector<NamedTensor> tensors;
    for (const ParamSpec& spec : table.specs()) {
      tensors.push_back({"parameters/" + spec.name, spec.shape,
                         std::span<const float>(parameters_)
                             .subspan(static_cast<size_t>(spec.range.begin),
                                      static_cast<size_t>(spec.range.size()))});
    }
    TrainingState state;
    state.model = claim != nullptr ? *claim : config_;
    state.step = 1;
    state.tokenizer_json = tokenizer_json;
    CheckpointStore(folder_.path(), 0).save(state, tensors);
  }

  void save(const Tokenizer& tokenizer) { save(tokenizer.size(), tokenizer.to_json()); }

  struct Result {
    int code;
    std::string output;  ///< standard output, or standard error when the program failed
  };

  Result run(const std::string& flags) {
    const std::string errors = (folder_ / "stderr").string();
    const std::string command = std::string(LOCKSTEP_SAMPLE) + " --checkpoint " +
                                folder_.path().string() + " --threads 1 " + flags + " 2>" + errors;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      output += static_cast<char>(c);
    }
    const int code = WEXITSTATUS(::pclose(pipe));
    std::ifstream file(errors);
    const std::string said((std::istreambuf_iterator<char>(file)), {});
    return {code, code == 0 ? output : said};
  }

  std::string text(const std::string& flags) {
    const Result result = run(flags);
    EXPECT_EQ(result.code, 0) << result.output;
    return result.output;
  }

  /// The most likely continuation, by whole forward passes.
  std::vector<int32_t> greedy(std::vector<int32_t> tokens, size_t length) {
    CpuStream stream;
    CpuBuffer<float> arena(static_cast<int64_t>(parameters_.size()));
    CpuBuffer<float> gradients(arena.size());
    std::copy(parameters_.begin(), parameters_.end(), arena.view().begin());
    Gpt<CpuDevice> model(config_, 1, kBlock, arena.view(), gradients.view());
    CpuBuffer<int32_t> input(kBlock);
    for (size_t i = 0; i < length; ++i) {
      std::copy(tokens.begin(), tokens.end(), input.view().begin());
      const float* row = model.logits(stream, input.view()).data() +
                         static_cast<int64_t>(tokens.size() - 1) * config_.padded_vocab();
      tokens.push_back(static_cast<int32_t>(std::max_element(row, row + config_.vocab_size) - row));
    }
    return tokens;
  }

  TemporaryFolder folder_;
  GptConfig config_;
  std::vector<float> parameters_;
};

TEST_F(SampleTest, TemperatureZeroWritesTheMostLikelySymbols) {
  const Tokenizer tokenizer = Tokenizer::chars_of("\n abcdefghijklmnopé€");
  save(tokenizer);
  std::string expected;
  for (const int32_t token : greedy(tokenizer.encode("bad"), 20)) {
    expected += tokenizer.decode(token);
  }
  EXPECT_EQ(text("--prompt bad --temperature 0 --max-new-tokens 20"), expected + "\n");
  EXPECT_EQ(text("--prompt bad --top-k 1 --max-new-tokens 20"), expected + "\n");
}

TEST_F(SampleTest, SeedsDecideTheText) {
  save(Tokenizer::chars_of("\n abcdefghijklmnopé€"));
  const std::string one = text("--temperature 1 --seed 1");
  EXPECT_EQ(one, text("--temperature 1 --seed 1"));
  EXPECT_NE(one, text("--temperature 1 --seed 2"));
  EXPECT_EQ(count_code_points(one), 501);
  // The first of several is the one that is written alone; the next is another.
  const std::string two = text("--temperature 1 --seed 1 --num-samples 2");
  const std::string between = "---------------\n";
  EXPECT_THAT(two, StartsWith(one + between));
  EXPECT_NE(two, one + between + one);
}

TEST_F(SampleTest, WritesUtf8OfABytesModel) {
  save(Tokenizer::bytes());
  const std::string written = text("--prompt 'é' --temperature 5 --top-k 256");
  EXPECT_THAT(written, AllOf(StartsWith("é"), HasSubstr("\xef\xbf\xbd")));
  for (size_t offset = 0; offset < written.size();) {
    const size_t length = decode_utf8(written, offset).length;
    ASSERT_GT(length, 0U) << offset;
    offset += length;
  }
}

TEST_F(SampleTest, WritesIdsWithoutAVocabulary) {
  save(40, "");
  std::string expected;
  for (const int32_t token : greedy({3, 39}, 5)) {
    expected += std::to_string(token) + " ";
  }
  EXPECT_EQ(text("--prompt '3 39' --temperature 0 --max-new-tokens 5"), expected + "\n");
  const Result result = run("--prompt '3 40'");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.output, HasSubstr("'40' is not a token id below 40"));
  EXPECT_EQ(run("--prompt abc").code, 2);
}

TEST_F(SampleTest, NamesASymbolThatTheModelDoesNotKnow) {
  save(Tokenizer::chars_of("\nabc"));
  const Result result = run("--prompt 'cabz'");
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.output,
            "sample: the vocabulary of 4 symbols has no 'z' (U+007A), at byte 3 (line 1, column 4) "
            "of the text\n");
}

TEST_F(SampleTest, RefusesAVocabularyOfAnotherSize) {
  save(5, Tokenizer::chars_of("\nabc").to_json());
  const Result result = run("");
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.output, HasSubstr("4 symbols in the vocabulary but 5 in the model"));
}

TEST_F(SampleTest, AllocatesNothingForAModelThatTheFilesDoNotHold) {
  const GptConfig huge = {
      .vocab_size = 40, .block_size = kBlock, .n_layer = 4096, .n_head = 2, .n_embd = 65536};
  save(40, "", &huge);
  const Result result = run("");
  EXPECT_EQ(result.code, 4) << result.output;
  EXPECT_THAT(result.output, HasSubstr("elements, not"));
}

TEST_F(SampleTest, RefusesBadFlagsAndAFolderWithoutCheckpoint) {
  Result result = run("");
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.output, AllOf(StartsWith("sample: "), HasSubstr(folder_.path().string())));
  save(Tokenizer::chars_of("\nabc"));
  for (const char* flags : {"--temperature -1", "--top-k 0", "--num-samples 0",
                            "--max-new-tokens 0", "--seed -1", "--temperatur 1"}) {
    EXPECT_EQ(run(flags).code, 2) << flags;
  }
  EXPECT_EQ(run("--seed 1 >/dev/full").code, 3);
}

}  // namespace
}  // namespace lockstep
