#include "core/data/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/token_shard_writer.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "support/write_token_shard.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kAnyId = int64_t{1} << 31;
constexpr int64_t kManyTokens = (int64_t{1} << 31) + 10;

std::vector<int32_t> read_all(const TokenShard& shard) {
  std::vector<int32_t> tokens(static_cast<size_t>(shard.size()));
  shard.read(0, shard.size(), kAnyId, tokens.data());
  return tokens;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A header made here, word by word as llm.c's data scripts do it.
std::string header(int32_t magic, int32_t version, int32_t tokens) {
  std::vector<int32_t> words(256, 0);
  words[0] = magic;
  words[1] = version;
  words[2] = tokens;
  return bytes_of(words);
}

class TokenShardTest : public testing::Test {
 protected:
  std::string usage_error(const std::string& content) {
    return error_of<UsageError>([&] { TokenShard(folder_.write("x.bin", content)); });
  }
  std::string corrupt_error(const std::string& content) {
    return error_of<CorruptError>([&] { TokenShard(folder_.write("x.bin", content)); });
  }

  TemporaryFolder folder_;
};

TEST_F(TokenShardTest, ReadsNanoGptsHeaderlessFile) {
  const TokenShard shard(folder_.write("x.bin", bytes_of<uint16_t>({7, 65535, 0, 300})));
  EXPECT_EQ(shard.format(), ShardFormat::kHeaderless);
  EXPECT_THAT(read_all(shard), ElementsAre(7, 65535, 0, 300));
  EXPECT_EQ(shard.largest_id(), 65535);
}

TEST_F(TokenShardTest, ReadsLlmCsGpt2File) {
  const TokenShard shard(
      folder_.write("x.bin", header(20240520, 1, 3) + bytes_of<uint16_t>({50256, 1, 2})));
  EXPECT_EQ(shard.format(), ShardFormat::kUint16);
  EXPECT_THAT(read_all(shard), ElementsAre(50256, 1, 2));
  EXPECT_EQ(shard.largest_id(), 50256);
}

TEST_F(TokenShardTest, ReadsLlmCsLlama3File) {
  const TokenShard shard(
      folder_.write("x.bin", header(20240801, 7, 2) + bytes_of<uint32_t>({128255, 5})));
  EXPECT_EQ(shard.format(), ShardFormat::kUint32);
  EXPECT_THAT(read_all(shard), ElementsAre(128255, 5));
  EXPECT_EQ(shard.largest_id(), 128255);
}

TEST_F(TokenShardTest, ReadsAnEmptyFileAsNoTokens) {
  const TokenShard shard(folder_.write("x.bin", ""));
  EXPECT_EQ(shard.size(), 0);
  EXPECT_EQ(shard.largest_id(), -1);
  EXPECT_EQ(shard.first_id_outside(1), std::nullopt);
}

TEST_F(TokenShardTest, RefusesAnOddSize) {
  EXPECT_THAT(corrupt_error("abc"), HasSubstr("x.bin: 3 bytes is an odd size"));
  EXPECT_THAT(corrupt_error("a"), HasSubstr("x.bin: 1 bytes is an odd size"));
}

TEST_F(TokenShardTest, RefusesACountThatDoesNotMatch) {
  EXPECT_THAT(corrupt_error(header(20240520, 1, 3) + bytes_of<uint16_t>({1, 2})),
              HasSubstr("the header counts 3 tokens of 2 bytes but 4 bytes follow"));
  EXPECT_THAT(corrupt_error(header(20240520, 1, 1) + bytes_of<uint16_t>({1, 2})),
              HasSubstr("the header counts 1 tokens"));
  EXPECT_THAT(corrupt_error(header(20240520, 1, -1) + bytes_of<uint16_t>({1, 2})),
              HasSubstr("the file is cut off or was changed"));
  EXPECT_THAT(corrupt_error(header(20240801, 7, 1) + "ab"),
              HasSubstr("the header counts 1 tokens of 4 bytes but 2 bytes follow"));
  EXPECT_THAT(corrupt_error(header(20240520, 1, 1) + "abc"), HasSubstr("3 bytes follow"));
}

TEST_F(TokenShardTest, RefusesACutOffHeader) {
  EXPECT_THAT(corrupt_error(header(20240520, 1, 0).substr(0, 1023)),
              HasSubstr("1023 bytes, cut off inside the header of 1024"));
  EXPECT_THAT(corrupt_error(header(20240520, 1, 0).substr(0, 4)), HasSubstr("cut off"));
}

TEST_F(TokenShardTest, RefusesOtherFilesAndVersionsOfLlmC) {
  EXPECT_THAT(usage_error(header(20240326, 3, 0)),
              HasSubstr("magic 20240326 is another of llm.c's files, not a token shard"));
  EXPECT_THAT(usage_error(header(20240520, 2, 0)),
              HasSubstr("version 2 of shards with magic 20240520; this build reads version 1"));
  EXPECT_THAT(usage_error(header(20240801, 1, 0)), HasSubstr("this build reads version 7"));
}

TEST_F(TokenShardTest, RefusesWhatIsNotAFile) {
  EXPECT_THROW(TokenShard(folder_ / "missing.bin"), IoError);
  EXPECT_THROW(TokenShard(folder_.path()), IoError);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of<IoError>([&] { TokenShard(folder_ / "pipe"); }),
              HasSubstr("not a regular file"));  // and does not wait for a writer
}

TEST_F(TokenShardTest, NamesThePositionOfAnIdOutsideTheVocabulary) {
  const TokenShard shard(folder_.write("x.bin", bytes_of<uint16_t>({1, 2, 64, 65, 66})));
  std::vector<int32_t> out(5);
  EXPECT_NO_THROW(shard.read(0, 3, 65, out.data()));
  EXPECT_THAT(error_of<CorruptError>([&] { shard.read(1, 4, 65, out.data()); }),
              HasSubstr("x.bin: token 3 is 65, outside the vocabulary of 65"));
  EXPECT_EQ(shard.first_id_outside(65), 3);
  EXPECT_EQ(shard.first_id_outside(67), std::nullopt);
}

TEST_F(TokenShardTest, DoesNotReadPastItsEnds) {
  const TokenShard shard(folder_.write("x.bin", bytes_of<uint16_t>({1, 2, 3})));
  std::vector<int32_t> out(4);
  EXPECT_THROW(shard.read(0, 4, kAnyId, out.data()), InternalError);
  EXPECT_THROW(shard.read(-1, 1, kAnyId, out.data()), InternalError);
  EXPECT_THROW(shard.read(3, 1, kAnyId, out.data()), InternalError);
  EXPECT_NO_THROW(shard.read(3, 0, kAnyId, out.data()));
}

TEST_F(TokenShardTest, TellsThatTheFileShrank) {
  std::vector<uint16_t> tokens(100000);
  std::iota(tokens.begin(), tokens.end(), uint16_t{0});
  const auto path = folder_.write("x.bin", bytes_of(tokens));
  const TokenShard shard(path);
  std::filesystem::resize_file(path, 2);
  std::vector<int32_t> out(10);
  EXPECT_THAT(error_of<CorruptError>([&] { shard.read(90000, 10, kAnyId, out.data()); }),
              HasSubstr("became shorter while it was in use"));
  EXPECT_THROW(shard.largest_id(), CorruptError);
  EXPECT_THROW(shard.fingerprint(), CorruptError);
}

TEST_F(TokenShardTest, HoldsMoreThanTwoToThe31Tokens) {
  const auto path = folder_.write("x.bin", "");
  std::filesystem::resize_file(path, 2 * kManyTokens);  // sparse: takes no room
  const TokenShard shard(path);
  EXPECT_EQ(shard.size(), kManyTokens);
  std::vector<int32_t> out(10, 1);
  shard.read(kManyTokens - 10, 10, kAnyId, out.data());
  EXPECT_EQ(out[9], 0);
}

TEST_F(TokenShardTest, CountsMoreThanTwoToThe31TokensInItsHeader) {
  std::string head = header(20240520, 1, 0);
  std::memcpy(head.data() + 8, &kManyTokens, sizeof(kManyTokens));
  const auto path = folder_.write("x.bin", head);
  std::filesystem::resize_file(path, 1024 + 2 * kManyTokens);
  EXPECT_EQ(TokenShard(path).size(), kManyTokens);
}

TEST_F(TokenShardTest, FingerprintTellsFilesApart) {
  const auto fingerprint = [&](const std::string& content) {
    return TokenShard(folder_.write("x.bin", content)).fingerprint();
  };
  const std::string one = fingerprint(bytes_of<uint16_t>({1, 2, 3}));
  EXPECT_EQ(one, fingerprint(bytes_of<uint16_t>({1, 2, 3})));
  EXPECT_NE(one, fingerprint(bytes_of<uint16_t>({1, 2, 4})));
  EXPECT_NE(one, fingerprint(bytes_of<uint16_t>({1, 2, 3, 0})));
}

TEST_F(TokenShardTest, FingerprintOfALargeFileSeesHeadTailAndSize) {
  const auto path = folder_.write("x.bin", "ab");
  const auto fingerprint = [&] { return TokenShard(path).fingerprint(); };
  const int64_t size = (int64_t{1} << 30) + 2;
  std::filesystem::resize_file(path, size);
  const std::string before = fingerprint();
  EXPECT_EQ(before, fingerprint());
  std::filesystem::resize_file(path, size + 2);
  EXPECT_NE(before, fingerprint());
  std::filesystem::resize_file(path, size);
  const auto poke = [&](int64_t offset) {
    const UniqueFd fd = open_file(path, 1 /* O_WRONLY */);
    ASSERT_EQ(::pwrite(fd.get(), "x", 1, offset), 1);
  };
  poke(size - 1);
  const std::string tail = fingerprint();
  EXPECT_NE(before, tail);
  poke(0);
  EXPECT_NE(tail, fingerprint());
}

TEST_F(TokenShardTest, WritesLlmCsBytes) {
  const std::vector<int32_t> tokens = {0, 65535, 7};
  write_token_shard(folder_ / "x.bin", tokens, 65536);
  EXPECT_EQ(read_file(folder_ / "x.bin"),
            header(20240520, 1, 3) + bytes_of<uint16_t>({0, 65535, 7}));
}

TEST_F(TokenShardTest, WritesWideIdsWhenTheyDoNotFit16Bits) {
  const std::vector<int32_t> tokens = {0, 65536, 7};
  write_token_shard(folder_ / "x.bin", tokens, 65537);
  EXPECT_EQ(read_file(folder_ / "x.bin"),
            header(20240801, 7, 3) + bytes_of<uint32_t>({0, 65536, 7}));
}

TEST_F(TokenShardTest, WriterPutsPiecesTogether) {
  TokenShardWriter writer(folder_ / "x.bin", 10);
  writer.append(std::vector<int32_t>{1, 2, 3});
  writer.append({});
  writer.append(std::vector<int32_t>{9});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.bin"));
  writer.finish();
  EXPECT_THAT(read_all(TokenShard(folder_ / "x.bin")), ElementsAre(1, 2, 3, 9));
}

TEST_F(TokenShardTest, WriterLeavesNothingBehindWhenItFails) {
  const std::string before = bytes_of<uint16_t>({1, 2});
  folder_.write("x.bin", before);
  EXPECT_THROW(write_token_shard(folder_ / "x.bin", std::vector<int32_t>{5, 10}, 10),
               InternalError);
  EXPECT_THROW(write_token_shard(folder_ / "x.bin", std::vector<int32_t>{-1}, 10), InternalError);
  EXPECT_EQ(read_file(folder_ / "x.bin"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

// A limit on the size of files stands for a disk that is full from the begin.
TEST_F(TokenShardTest, WriterLeavesNothingBehindOnAFullDisk) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const std::string error = error_of<IoError>([&] {
    TokenShardWriter writer(folder_ / "x.bin", 10);
    writer.append(std::vector<int32_t>{1, 2});
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr("x.bin.tmp: File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(TokenShardTest, WriterNamesAFolderThatCannotBeWritten) {
  folder_.write("file", "");
  EXPECT_THAT(error_of<IoError>([&] { TokenShardWriter(folder_ / "file/x.bin", 10); }),
              HasSubstr("file/x.bin"));
}

}  // namespace
}  // namespace lockstep
