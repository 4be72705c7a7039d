#include "core/data/data_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "core/base/error.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "support/write_token_shard.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

constexpr int64_t kTokens = 500;
constexpr int64_t kBlock = 8;

/// A shard whose token i is i: a batch shows where it came from.
class DataLoaderTest : public testing::Test {
 protected:
  DataLoaderTest() {
    std::vector<int32_t> tokens(kTokens);
    std::iota(tokens.begin(), tokens.end(), 0);
    write_token_shard(folder_ / "x.bin", tokens, kTokens);
    shard_.emplace(folder_ / "x.bin");
  }

  static LoaderShape shape(int rank, int world_size, int64_t batch_size, int64_t accumulation) {
    return {rank, world_size, batch_size, accumulation, kBlock, kTokens};
  }

  TemporaryFolder folder_;
  std::optional<TokenShard> shard_;
};

/// The first tokens of a batch's rows.
std::vector<int64_t> offsets(const HostBatch& batch) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < batch.tokens.size(); i += kBlock) {
    result.push_back(batch.tokens[i]);
  }
  return result;
}

TEST_F(DataLoaderTest, YieldsWindowsWithTheirTargets) {
  DataLoader loader(*shard_, 1, shape(0, 1, 3, 1), 0);
  for (int i = 0; i < 100; ++i) {
    const HostBatch& batch = loader.next();
    ASSERT_EQ(batch.tokens.size(), 3U * kBlock);
    for (size_t row = 0; row < 3; ++row) {
      for (size_t t = 0; t < kBlock; ++t) {
        ASSERT_EQ(batch.tokens[row * kBlock + t], batch.tokens[row * kBlock] + static_cast<int>(t));
        ASSERT_EQ(batch.targets[row * kBlock + t], batch.tokens[row * kBlock + t] + 1);
      }
    }
  }
}

TEST_F(DataLoaderTest, FollowsTheSampleOrder) {
  const SampleOrder order(9, kTokens, kBlock);
  DataLoader loader(*shard_, 9, shape(0, 1, 4, 2), 3);
  for (int64_t sample = 3 * 8; sample < 3 * 8 + 400; sample += 4) {
    const std::vector<int64_t> rows = offsets(loader.next());
    for (int64_t row = 0; row < 4; ++row) {
      ASSERT_EQ(rows[static_cast<size_t>(row)], order.offset(sample + row));
    }
  }
}

// Micro-batch j of a step is rank j mod world_size's, so any split of the same global batch sees
// the same micro-batches.
TEST_F(DataLoaderTest, GivesTheSameMicroBatchesToAnyNumberOfRanks) {
  constexpr int micro_batches = 12;  // of a step
  constexpr int64_t steps = 5;
  DataLoader single(*shard_, 4, shape(0, 1, 2, micro_batches), 0);
  std::vector<std::vector<int64_t>> expected;
  for (int64_t i = 0; i < steps * micro_batches; ++i) {
    expected.push_back(offsets(single.next()));
  }
  for (const int world_size : {2, 3, 4, 6, 12}) {
    for (int rank = 0; rank < world_size; ++rank) {
      DataLoader loader(*shard_, 4, shape(rank, world_size, 2, micro_batches / world_size), 0);
      for (auto i = static_cast<size_t>(rank); i < expected.size();
           i += static_cast<size_t>(world_size)) {
        ASSERT_EQ(offsets(loader.next()), expected[i]) << rank << " of " << world_size;
      }
    }
  }
}

TEST_F(DataLoaderTest, ContinuesARun) {
  DataLoader whole(*shard_, 2, shape(1, 2, 3, 2), 0);
  for (int i = 0; i < 7 * 2; ++i) {
    whole.next();
  }
  DataLoader rest(*shard_, 2, shape(1, 2, 3, 2), 7);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(offsets(rest.next()), offsets(whole.next()));
  }
}

TEST_F(DataLoaderTest, KeepsABatchUntilTheNextCall) {
  DataLoader loader(*shard_, 2, shape(0, 1, 2, 1), 0);
  for (int i = 0; i < 50; ++i) {
    const HostBatch& batch = loader.next();
    const std::vector<int32_t> before = batch.tokens;
    std::this_thread::yield();
    ASSERT_EQ(batch.tokens, before);
  }
}

TEST_F(DataLoaderTest, StopsWhenItIsDestroyedAtAnyMoment) {
  for (int taken = 0; taken < 5; ++taken) {
    for (int i = 0; i < 20; ++i) {
      DataLoader loader(*shard_, 2, shape(0, 1, 2, 1), 0);
      for (int batch = 0; batch < taken; ++batch) {
        loader.next();
      }
    }
  }
}

TEST_F(DataLoaderTest, DeliversTheThreadsErrors) {
  LoaderShape small = shape(0, 1, 2, 1);
  small.vocabulary = 10;
  DataLoader loader(*shard_, 2, small, 0);
  const auto drain = [&] {
    for (int i = 0; i < 1000; ++i) {
      loader.next();
    }
  };
  EXPECT_THAT(error_of<CorruptError>(drain), HasSubstr("outside the vocabulary of 10"));
  EXPECT_THROW(loader.next(), CorruptError);
}

TEST_F(DataLoaderTest, TellsThatTheShardShrank) {
  DataLoader loader(*shard_, 2, shape(0, 1, 2, 1), 0);
  loader.next();
  std::filesystem::resize_file(folder_ / "x.bin", 100);
  EXPECT_THAT(error_of<CorruptError>([&] {
                for (int i = 0; i < 10; ++i) {
                  loader.next();
                }
              }),
              HasSubstr("became shorter"));
}

}  // namespace
}  // namespace lockstep
