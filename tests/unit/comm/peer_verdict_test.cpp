#include "comm/peer_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "comm/pair_schedule.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Every pair proven at 300 GB/s, 50 through the host.
PeerVerdict measured(int ranks) {
  PeerVerdict verdict(ranks);
  for (PeerPair& pair : verdict.pairs) {
    pair.claim = PeerClaim::kYes;
    pair.kernel = {20, 300};
    pair.copies = {22, 280};
    pair.latency_us = 1.25;
  }
  verdict.staging.assign(static_cast<size_t>(ranks), PeerRates{8, 50});
  return verdict;
}

TEST(PairSchedule, EveryPairMeetsOnceAndNobodyTwiceInARound) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < pair_rounds(ranks); ++round) {
      for (int rank = 0; rank < ranks; ++rank) {
        const int partner = pair_partner(rank, round, ranks);
        if (partner < 0) {
          continue;
        }
        ASSERT_LT(partner, ranks);
        ASSERT_NE(partner, rank);
        EXPECT_EQ(pair_partner(partner, round, ranks), rank);
        EXPECT_TRUE(met.insert({rank, partner}).second) << rank << " meets " << partner << " again";
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(ranks * (ranks - 1))) << ranks << " ranks";
  }
}

TEST(PeerPattern, WritesItsPiecesAndNothingElse) {
  int64_t written = 0;
  for (int64_t index = 0; index < kProbeWindowBytes / 4; ++index) {
    for (int byte = 0; byte < 4; ++byte) {
      const int64_t at = 4 * index + byte;
      bool inside = false;
      for (const Range& piece : {kProbeHead, kProbeBulk, kProbeTail}) {
        inside = inside || (at >= piece.begin && at < piece.end);
      }
      const bool marked = (probe_mask(index) >> (8 * byte) & 0xffU) == 0xffU;
      ASSERT_EQ(marked, inside) << "byte " << at;
      ASSERT_TRUE(!inside || (at >= kProbeSpan.begin && at < kProbeSpan.end)) << "byte " << at;
      written += marked ? 1 : 0;
    }
  }
  EXPECT_EQ(written, kProbeHead.size() + kProbeBulk.size() + kProbeTail.size());
}

TEST(PeerPattern, DiffersByWriterOwnerEpochAndPlace) {
  std::set<uint32_t> words;
  std::set<uint64_t> marks;
  size_t count = 0;
  for (int writer = 0; writer < 8; ++writer) {
    for (int owner = 0; owner < 8; ++owner) {
      for (uint32_t epoch = 1; epoch < 9; ++epoch) {
        words.insert(probe_word(probe_key(writer, owner, epoch), 4096));
        marks.insert(probe_mark(writer, owner, epoch));
        ++count;
      }
    }
  }
  EXPECT_EQ(words.size(), count);
  EXPECT_EQ(marks.size(), count);
  EXPECT_FALSE(marks.contains(0)) << "what the memory holds at first";
  words.clear();
  for (int64_t index = 0; index < kProbeWindowBytes / 4; index += 97) {
    words.insert(probe_word(probe_key(0, 1, 1), index));
  }
  EXPECT_EQ(words.size(), static_cast<size_t>((kProbeWindowBytes / 4 + 96) / 97));
}

TEST(PeerVerdict, SaysWhatIsThereInPlaceOfTheValues) {
  const ProbeContent expected{probe_key(0, 1, 2), probe_key(1, 1, 2)};
  const uint32_t stale = probe_key(0, 1, 1);
  const int64_t inside = kProbeBulk.begin / 4 + 7;
  const auto fault = [&](int64_t index, uint32_t found) {
    return finding_at(index, found, expected, stale).fault;
  };
  EXPECT_EQ(fault(inside, probe_word(expected.rest, inside)), PeerFault::kNothing);
  EXPECT_EQ(fault(inside, 0), PeerFault::kZeros);
  EXPECT_EQ(fault(inside, probe_word(stale, inside)), PeerFault::kStale);
  EXPECT_EQ(fault(inside, 12345), PeerFault::kOther);
  // The first byte of the window is in no piece, the rest of its word is.
  const uint32_t nothing = probe_word(expected.rest, 0);
  EXPECT_EQ(fault(0, nothing), PeerFault::kNothing);
  EXPECT_EQ(fault(0, (probe_word(stale, 0) & ~0xffU) | (nothing & 0xffU)), PeerFault::kStale);
  EXPECT_EQ(fault(0, probe_word(expected, 0) ^ 1U), PeerFault::kOther);
  // Between the pieces nothing may be written.
  const int64_t between = kProbeBulk.begin / 4 - 1;
  EXPECT_EQ(fault(between, probe_word(expected.pieces, between)), PeerFault::kOther);
  EXPECT_EQ(finding_at(inside, 0, expected, stale).byte, 4 * inside);
}

TEST(PeerVerdict, IsUsableWhenEveryPairIsProvenAndFast) {
  PeerVerdict verdict = measured(3);
  verdict.pair(2, 1).kernel[1] = 60;
  verdict.pair(2, 1).copies[1] = 70;
  settle(&verdict);
  EXPECT_TRUE(verdict.usable);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("at least 70.0 GB/s"), HasSubstr("at most 1.25 us"),
                                    HasSubstr("50.0 GB/s through the host")));
  EXPECT_THAT(pairs_text(verdict),
              AllOf(HasSubstr(" 2 -> 1  yes"), HasSubstr("proven"), Not(HasSubstr("stage"))));
}

TEST(PeerVerdict, OnePairDecidesForAll) {
  PeerVerdict verdict = measured(4);
  verdict.pair(3, 2).failed = ProbeStage::kLive;
  verdict.pair(3, 2).finding = {.fault = PeerFault::kLate, .expected = 17};
  verdict.pair(2, 0).failed = ProbeStage::kStores;
  verdict.pair(2, 0).finding = {.fault = PeerFault::kNothing, .byte = 8192};
  settle(&verdict);
  EXPECT_FALSE(verdict.usable);
  EXPECT_EQ(
      verdict.reason,
      "rank 2's stores do not reach rank 0's memory (stage 3, stores): byte 8192 is as it was "
      "before");
  EXPECT_EQ(failure_text(verdict, 3, 2),
            "rank 3's messages do not reach rank 2 while both GPUs run (stage 7, live): message 17 "
            "did not come");
  EXPECT_TRUE(verdict.pair(0, 1).proven());
  EXPECT_THAT(pairs_text(verdict), HasSubstr(verdict.reason));
}

TEST(PeerVerdict, NamesCopiesThatAMarkOvertook) {
  PeerVerdict verdict = measured(3);
  verdict.pair(2, 1).failed = ProbeStage::kLiveCopies;
  verdict.pair(2, 1).finding = {.fault = PeerFault::kStale, .byte = 8192};
  verdict.pair(1, 0).failed = ProbeStage::kLiveCopies;
  verdict.pair(1, 0).finding = {.fault = PeerFault::kLate, .expected = 2};
  settle(&verdict);
  EXPECT_FALSE(verdict.usable);
  EXPECT_FALSE(verdict.pair(2, 1).proven());
  EXPECT_EQ(verdict.reason,
            "rank 1's copies do not reach rank 0 one after another while its GPU runs (stage 8, "
            "live copies): message 2 did not come");
  EXPECT_EQ(failure_text(verdict, 2, 1),
            "rank 2's copies do not reach rank 1 one after another while its GPU runs (stage 8, "
            "live copies): byte 8192 has the values of the epoch before");
}

TEST(PeerVerdict, BlamesTheDirectionThatFailed) {
  PeerVerdict verdict = measured(2);
  verdict.pair(0, 1).failed = ProbeStage::kLive;
  verdict.pair(0, 1).finding.fault = PeerFault::kUntried;
  verdict.pair(1, 0).failed = ProbeStage::kLive;
  verdict.pair(1, 0).finding = {.fault = PeerFault::kLate, .expected = 1};
  settle(&verdict);
  EXPECT_THAT(verdict.reason, StartsWith("rank 1's messages do not reach rank 0"));
  EXPECT_THAT(failure_text(verdict, 0, 1), HasSubstr("not tried"));
}

TEST(PeerVerdict, GoesThroughTheHostWhereThatIsFaster) {
  PeerVerdict verdict = measured(2);
  verdict.pair(1, 0).kernel[1] = 44.9;
  verdict.pair(1, 0).copies[1] = 44;
  settle(&verdict);
  EXPECT_FALSE(verdict.usable);
  EXPECT_TRUE(verdict.pair(1, 0).proven());
  EXPECT_EQ(verdict.reason,
            "rank 1 reaches rank 0's memory at 44.9 GB/s, through the host 50.0 (stage 9, speed)");
  verdict = measured(2);
  verdict.pair(1, 0).kernel[1] = 44.9;
  verdict.pair(1, 0).copies[1] = 45.1;  // 0.9 of the host's 50 is enough
  settle(&verdict);
  EXPECT_TRUE(verdict.usable);
}

TEST(PeerVerdict, NamesWhyNoMemoryIsMapped) {
  PeerVerdict verdict(2);
  verdict.pair(0, 1).failed = ProbeStage::kIdentity;
  verdict.pair(0, 1).claim = PeerClaim::kNo;
  settle(&verdict);
  EXPECT_THAT(verdict.reason, StartsWith("rank 0's GPU cannot address rank 1's (stage 1"));
  verdict.pair(0, 1).claim = PeerClaim::kUnknown;
  settle(&verdict);
  EXPECT_THAT(verdict.reason, StartsWith("ranks 0 and 1 are on different hosts (stage 1"));
  settle(&verdict, "rank 0 (host a, pid 7) cannot map the GPU memory of rank 1: why");
  EXPECT_EQ(verdict.reason,
            "rank 0 (host a, pid 7) cannot map the GPU memory of rank 1: why (stage 2, mapping)");
  PeerVerdict alone(1);
  settle(&alone);
  EXPECT_FALSE(alone.usable);
  EXPECT_EQ(alone.reason, "there is one rank");
}

TEST(PeerVerdict, KnowsWhoSharesAGpu) {
  PeerVerdict verdict = measured(3);
  verdict.pair(0, 0).claim = PeerClaim::kSameGpu;  // with itself
  EXPECT_FALSE(verdict.shares_gpu(0));
  verdict.pair(2, 0).claim = PeerClaim::kSameGpu;
  verdict.pair(0, 2).claim = PeerClaim::kSameGpu;
  EXPECT_TRUE(verdict.shares_gpu(0));
  EXPECT_FALSE(verdict.shares_gpu(1));
  EXPECT_TRUE(verdict.shares_gpu(2));
}

TEST(PeerVerdict, TellsALostMessageFromALostAnswer) {
  EXPECT_TRUE(lost_to_second({.first = 0, .second = 0}));
  EXPECT_FALSE(lost_to_second({.first = 0, .second = 1}));
  EXPECT_TRUE(lost_to_second({.first = 6, .second = 6}));
  EXPECT_FALSE(lost_to_second({.first = 6, .second = 7}));
}

}  // namespace
}  // namespace lockstep
