#include "core/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "support/write_token_shard.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

class DatasetTest : public testing::Test {
 protected:
  void headerless(const char* name, const std::vector<uint16_t>& tokens) {
    folder_.write(name,
                  {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint16_t)});
  }
  void shard(const char* name, const std::vector<int32_t>& tokens, int64_t vocabulary) {
    write_token_shard(folder_ / name, tokens, vocabulary);
  }
  void vocabulary(const std::string& text) {
    Tokenizer::chars_of(text).save(folder_ / "vocab.json");
  }
  Dataset open(int64_t block_size = 2) { return {folder_.path(), block_size}; }
  std::string usage_error(int64_t block_size = 2) {
    return error_of<UsageError>([&] { open(block_size); });
  }
  std::string corrupt_error() {
    return error_of<CorruptError>([&] { open(); });
  }

  TemporaryFolder folder_;
};

TEST_F(DatasetTest, TakesTheVocabularysSize) {
  shard("train.bin", {0, 1, 2}, 4);
  shard("val.bin", {2, 1, 0}, 4);
  vocabulary("abcd");
  const Dataset data = open();
  EXPECT_EQ(data.vocab_size(), 4);
  EXPECT_EQ(data.train().size(), 3);
  EXPECT_EQ(data.val().path().filename(), "val.bin");
  ASSERT_TRUE(data.tokenizer());
  EXPECT_EQ(data.tokenizer()->decode(3), "d");
}

TEST_F(DatasetTest, FindsTheSizeWithoutAVocabulary) {
  headerless("train.bin", {0, 1, 64});
  headerless("val.bin", {2, 1, 0});
  EXPECT_EQ(open().vocab_size(), 65);  // characters
  headerless("val.bin", {2, 70, 0});
  EXPECT_EQ(open().vocab_size(), 71);
  headerless("val.bin", {2, 32767, 0});
  EXPECT_EQ(open().vocab_size(), 32768);
  headerless("val.bin", {2, 32768, 0});
  EXPECT_EQ(open().vocab_size(), 50257);  // GPT-2's, by its ids
  headerless("val.bin", {2, 60000, 0});
  EXPECT_EQ(open().vocab_size(), 60001);
  shard("val.bin", {1, 2, 3}, 4);
  EXPECT_EQ(open().vocab_size(), 50257);  // GPT-2's, by its header
  shard("train.bin", {1, 2, 3}, 70000);
  EXPECT_EQ(open().vocab_size(), 128256);  // Llama 3's, by its header
  EXPECT_FALSE(open().tokenizer());
}

TEST_F(DatasetTest, SaysHowToMakeWhatIsMissing) {
  EXPECT_EQ(error_of<UsageError>([&] { Dataset(folder_ / "none", 2); }),
            (folder_ / "none/train.bin").string() +
                " does not exist; make it with: tokenize --text FILE --kind char --out " +
                (folder_ / "none").string());
  headerless("train.bin", {1, 2, 3});
  EXPECT_THAT(usage_error(), HasSubstr("/val.bin does not exist; make it with: tokenize"));
  std::filesystem::rename(folder_ / "train.bin", folder_ / "val.bin");
  EXPECT_THAT(usage_error(), HasSubstr("/train.bin does not exist"));
}

TEST_F(DatasetTest, RefusesASplitShorterThanABlock) {
  headerless("train.bin", {1, 2, 3, 4, 5, 6});
  headerless("val.bin", {1, 2, 3, 4, 5});
  EXPECT_EQ(open(4).val().size(), 5);
  EXPECT_THAT(usage_error(5),
              HasSubstr("val.bin has 5 tokens but one sample takes 6 (block size 5 "
                        "and one to predict); use a longer text or --block-size 4"));
  EXPECT_THAT(usage_error(6), HasSubstr("train.bin has 6 tokens but one sample takes 7"));
}

TEST_F(DatasetTest, RefusesAnEmptyValidationSplit) {
  headerless("train.bin", {1, 2, 3});
  headerless("val.bin", {});
  EXPECT_THAT(usage_error(), HasSubstr("val.bin has no tokens"));
}

TEST_F(DatasetTest, RefusesIdsOutsideTheVocabulary) {
  vocabulary("abcd");
  shard("train.bin", {0, 1, 2}, 4);
  shard("val.bin", {0, 1, 2, 5, 4}, 6);
  EXPECT_THAT(corrupt_error(),
              HasSubstr("val.bin: token 3 is outside the vocabulary of 4 in vocab.json (the "
                        "largest id is 5)"));
  shard("train.bin", {4, 1, 2}, 6);
  EXPECT_THAT(corrupt_error(), HasSubstr("train.bin: token 0 is outside the vocabulary of 4"));
}

TEST_F(DatasetTest, RefusesADamagedVocabulary) {
  shard("train.bin", {0, 1, 2}, 4);
  shard("val.bin", {0, 1, 2}, 4);
  folder_.write("vocab.json", "{}");
  EXPECT_THAT(corrupt_error(), HasSubstr("vocab.json: not a vocabulary"));
}

TEST_F(DatasetTest, RefusesAVocabularyThatIsNoFile) {
  shard("train.bin", {0, 1, 2}, 4);
  shard("val.bin", {2, 1, 0}, 4);
  const auto io_error = [&] { return error_of<IoError>([&] { open(); }); };
  std::filesystem::create_symlink("nowhere", folder_ / "vocab.json");
  EXPECT_THAT(io_error(), HasSubstr("cannot open"));
  std::filesystem::remove(folder_ / "vocab.json");
  ASSERT_EQ(::mkfifo((folder_ / "vocab.json").c_str(), 0600), 0);
  EXPECT_THAT(io_error(), HasSubstr("not a regular file"));
}

TEST_F(DatasetTest, FingerprintCoversSplitsAndVocabulary) {
  shard("train.bin", {0, 1, 2}, 4);
  shard("val.bin", {0, 1, 1}, 4);
  const std::string bare = open().fingerprint();
  vocabulary("abcd");
  const std::string abcd = open().fingerprint();
  EXPECT_NE(bare, abcd);
  vocabulary("abce");
  EXPECT_NE(open().fingerprint(), abcd);
  // Another spelling of the same vocabulary.
  folder_.write("vocab.json",
                R"({"symbols": ["a", "b", "c", "\u0064"], "kind": "char", "version": 1,
                    "format": "lockstep-vocabulary"})");
  EXPECT_EQ(open().fingerprint(), abcd);
  shard("val.bin", {0, 1, 2}, 4);
  EXPECT_NE(open().fingerprint(), abcd);
  shard("train.bin", {0, 1, 1}, 4);
  EXPECT_NE(open().fingerprint(), abcd);  // the splits changed places
}

}  // namespace
}  // namespace lockstep
