#include "comm/ring_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/socket_transport.h"
#include "unit/comm/ring_of_threads.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class RingOver : public testing::TestWithParam<Links> {};

TEST_P(RingOver, SumsRangesOfEverySizeExactly) {
  for (int world = 2; world <= 4; ++world) {
    const RingSetup setup = {world, GetParam(), 9 * kS + 100};
    run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
      for (const Range range :
           {Range{0, 1}, Range{kS - 1, kS + 1}, Range{77, 77 + 2047}, Range{5, 6}, Range{0, kS},
            Range{3, 3}, Range{9 * kS, 9 * kS + 100}, Range{kS / 2, 9 * kS + 5}}) {
        fill_integers(rank, range, window);
        ring.run(range, 4);
        ring.drain();
        expect_integer_sums(world, range, window);
      }
    });
  }
}

const std::vector<Range> kShardedRanges = {
    {0, 1}, {kS - 1, kS + 1}, {77, 77 + 2047},        {0, kS},
    {3, 3}, {kS, 8 * kS},     {9 * kS, 9 * kS + 100}, {kS / 2, 9 * kS + 5}};

TEST_P(RingOver, ScattersTheSumsOfRangesOfEverySizeToTheirOwners) {
  for (int world = 2; world <= 5; ++world) {
    const RingSetup setup = {world, GetParam(), 9 * kS + 100};
    run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
      for (const Range range : kShardedRanges) {
        fill_integers(rank, range, window);
        ring.run(range, 4, CollectiveKind::kReduceScatter);
        ring.drain();
        expect_own_integer_sums(rank, world, range, window);
      }
    });
  }
}

TEST_P(RingOver, GathersTheBitsOfTheOwners) {
  for (int world = 2; world <= 5; ++world) {
    const RingSetup setup = {world, GetParam(), 9 * kS + 100};
    run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
      for (const Range range : kShardedRanges) {
        fill_with_bits(rank, window);
        ring.run(range, 4, CollectiveKind::kAllGather);
        ring.drain();
        expect_owners_bits(rank, world, range, window);
      }
    });
  }
}

// Each of these ranges has one owner, and the rank with which its way begins waits for nobody's
// data: so the rank before a late one may begin as many collectives as there are ranks before that
// one has begun the first of them.
TEST_P(RingOver, LetsRanksRunAheadOfALateOne) {
  constexpr int world = 7;
  constexpr int64_t rounds = 30;
  for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    const RingSetup setup = {world, GetParam(), rounds * kS};
    run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
      for (int64_t i = 0; i < rounds; ++i) {
        window[i * kS] = integer_at(rank, i);
      }
      for (int64_t i = 0; i < rounds; ++i) {
        if (rank == 0) {
          std::this_thread::sleep_for(milliseconds(5));
        }
        ring.run({i * kS, i * kS + 1}, static_cast<int>(i), kind);
      }
      ring.drain();
      for (int64_t i = 0; i < rounds; ++i) {
        const auto owner = static_cast<int>(i % world);
        if (kind == CollectiveKind::kAllGather) {
          ASSERT_EQ(window[i * kS], integer_at(owner, i));
        } else if (rank == owner) {
          ASSERT_EQ(window[i * kS], integer_sum_at(world, i));
        }
      }
    });
  }
}

TEST_P(RingOver, KeepsManySmallSumsApart) {
  const RingSetup setup = {3, GetParam(), 64};
  run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
    for (int round = 0; round < 2000; ++round) {
      const int64_t begin = round % 60;
      window[begin] = static_cast<float>(rank + round);
      ring.run({begin, begin + 1 + round % 4}, round);
      ring.drain();
      ASSERT_EQ(window[begin], static_cast<float>(3 + 3 * round));
      std::fill(window.begin(), window.end(), 0.0F);
    }
  });
}

TEST_P(RingOver, DrainsBeforeTheWindowMayChange) {
  for (int world = 2; world <= 4; ++world) {
    RingSetup setup = {world, GetParam(), 5 * kS};
    setup.slow = true;
    std::vector<std::vector<float>> sums(static_cast<size_t>(world));
    run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
      for (int64_t i = 0; i < window.size(); ++i) {
        window[i] = integer_at(rank, i);
      }
      ring.run({0, window.size()}, 0);
      sums[static_cast<size_t>(rank)].assign(window.begin(), window.end());
      ring.drain();
      std::fill(window.begin(), window.end(), -1.0F);
    });
    for (std::vector<float>& sum : sums) {
      expect_integer_sums(world, {0, 5 * kS}, {sum.data(), 5 * kS});
    }
  }
}

TEST_P(RingOver, DrainsShardsBeforeTheWindowMayChange) {
  for (int world = 2; world <= 4; ++world) {
    const Range whole = {0, 5 * kS};
    RingSetup setup = {world, GetParam(), whole.end};
    setup.slow = true;
    std::vector<std::vector<float>> sums(static_cast<size_t>(world));
    std::vector<std::vector<float>> gathered(static_cast<size_t>(world));
    run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
      for (int64_t i = 0; i < window.size(); ++i) {
        window[i] = integer_at(rank, i);
      }
      ring.run(whole, 0, CollectiveKind::kReduceScatter);
      sums[static_cast<size_t>(rank)].assign(window.begin(), window.end());
      ring.drain();
      fill_with_bits(rank, window);
      ring.run(whole, 0, CollectiveKind::kAllGather);
      gathered[static_cast<size_t>(rank)].assign(window.begin(), window.end());
      ring.drain();
      std::fill(window.begin(), window.end(), -1.0F);
    });
    for (int rank = 0; rank < world; ++rank) {
      const auto of_rank = static_cast<size_t>(rank);
      expect_own_integer_sums(rank, world, whole, {sums[of_rank].data(), whole.end});
      expect_owners_bits(rank, world, whole, {gathered[of_rank].data(), whole.end});
    }
  }
}

/// Everyone's window after each range was summed by all-reduce, or in shards that were gathered.
std::vector<std::vector<float>> sums_of_reals(int world, Links links,
                                              const std::vector<Range>& division,
                                              bool in_shards = false) {
  std::vector<std::vector<float>> results(static_cast<size_t>(world));
  const RingSetup setup = {world, links, 20 * kS + 9};
  run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
    for (int64_t i = 0; i < window.size(); ++i) {
      window[i] = real_at(rank, i);
    }
    for (const Range& range : division) {
      ring.run(range, 0, in_shards ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce);
    }
    ring.drain();
    if (in_shards) {
      ring.run({0, window.size()}, 0, CollectiveKind::kAllGather);
      ring.drain();
    }
    results[static_cast<size_t>(rank)].assign(window.begin(), window.end());
  });
  return results;
}

TEST(Ring, GivesTheSameBitsOnEveryRankTransportAndDivision) {
  const std::vector<Range> whole = {{0, 20 * kS + 9}};
  const std::vector<Range> divided = {{7 * kS + 1, 20 * kS + 9}, {kS, 7 * kS + 1}, {0, 5}, {5, kS}};
  for (int world = 2; world <= 4; ++world) {
    const std::vector<float> reference = sums_of_reals(world, Links::kShm, whole)[0];
    for (const Links links : {Links::kShm, Links::kSocket, Links::kMixed}) {
      for (const std::vector<Range>& division : {whole, divided}) {
        for (const bool in_shards : {false, true}) {
          for (const std::vector<float>& sums : sums_of_reals(world, links, division, in_shards)) {
            ASSERT_EQ(std::memcmp(sums.data(), reference.data(), sums.size() * sizeof(float)), 0)
                << world << " ranks";
          }
        }
      }
    }
  }
}

TEST_P(RingOver, NamesBothSidesWhenRanksCallDifferentCollectives) {
  const RingSetup setup = {2, GetParam(), 1000};
  std::atomic<int> disagreed{0};
  run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> /*window*/) {
    ring.run({0, 10}, 1);
    try {
      ring.run({0, rank == 0 ? 500 : 400}, 2);
      ADD_FAILURE() << "rank " << rank << " summed different ranges";
    } catch (const RanksDisagreeError& error) {
      ++disagreed;
      EXPECT_THAT(error.what(), HasSubstr("[0, 500)"));
      EXPECT_THAT(error.what(), HasSubstr("[0, 400)"));
    } catch (const PeerLostError& error) {
      ++disagreed;  // the other rank found out first and is gone
    }
  });
  EXPECT_EQ(disagreed, 2);
}

TEST_P(RingOver, NamesBothWorksWhenRanksCallDifferentOnes) {
  const RingSetup setup = {2, GetParam(), 1000};
  std::atomic<int> disagreed{0};
  run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> /*window*/) {
    try {
      ring.run({0, 500}, 2,
               rank == 0 ? CollectiveKind::kReduceScatter : CollectiveKind::kAllGather);
      ADD_FAILURE() << "rank " << rank << " did something else than the other";
    } catch (const RanksDisagreeError& error) {
      ++disagreed;
      EXPECT_THAT(error.what(), HasSubstr("the ranks call different collectives: "));
      EXPECT_THAT(error.what(), HasSubstr("rank 0 is in collective 1 (reduce-scatter), bucket 2"));
      EXPECT_THAT(error.what(), HasSubstr("rank 1 is in collective 1 (all-gather), bucket 2"));
    } catch (const PeerLostError& error) {
      ++disagreed;  // the other rank found out first and is gone
    }
  });
  EXPECT_EQ(disagreed, 2);
}

TEST_P(RingOver, LeavesAWaitWhenTheRunIsAborted) {
  const RingSetup setup = {2, GetParam(), 1000};
  TestAbort abort;
  run_ring(setup, abort, [&](int rank, RingExecutor& ring, CpuView<float> /*window*/) {
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      abort.abort();
      std::this_thread::sleep_for(milliseconds(100));
      return;
    }
    EXPECT_THROW(ring.run({0, 100}, 0), AbortedError);
  });
}

TEST_P(RingOver, TimesOutNamingRankPeerAndBucket) {
  const RingSetup setup = {2, GetParam(), 1000, milliseconds(100)};
  std::latch timed_out(1);
  run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> /*window*/) {
    if (rank == 1) {
      timed_out.wait();  // lives, and does not come
      return;
    }
    try {
      ring.run({0, 100}, 7);
      ADD_FAILURE() << "nobody took part";
    } catch (const TimeoutError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 waited 0.1 s for rank 1"));
      EXPECT_THAT(error.what(), HasSubstr("bucket 7"));
    }
    timed_out.count_down();
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, RingOver,
                         testing::Values(Links::kShm, Links::kSocket, Links::kMixed),
                         [](const testing::TestParamInfo<Links>& tested) {
                           switch (tested.param) {
                             case Links::kShm:
                               return "Shm";
                             case Links::kSocket:
                               return "Socket";
                             case Links::kMixed:
                               return "Mixed";
                           }
                           return "";
                         });

/// Unix sockets: over TCP, buffers far below a packet's size make each byte wait for a timer.
void sum_over_smallest_buffers(int world, SocketPath path) {
  constexpr int64_t elements = 30 * kS + 3;
  std::vector<std::array<UniqueFd, 2>> links(static_cast<size_t>(world));  // to the successor
  for (std::array<UniqueFd, 2>& link : links) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    link = {UniqueFd(ends[0]), UniqueFd(ends[1])};
    const int bytes = 4096;
    ASSERT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    ASSERT_EQ(::setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
  }
  run_ranks(world, [&](Bootstrap& bootstrap) {
    const int rank = bootstrap.rank();
    UniqueFd out = std::move(links[static_cast<size_t>(rank)][0]);
    UniqueFd in = std::move(links[static_cast<size_t>((rank + world - 1) % world)][1]);
    CpuBuffer<float> window(elements);
    const auto fill_with_integers = [&] {
      for (int64_t i = 0; i < elements; ++i) {
        window.view()[i] = integer_at(rank, i);
      }
    };
    RingOptions options;
    options.rank = rank;
    options.world_size = world;
    RingExecutor ring(options, make_socket_send_edge(std::move(out), window.view(), path),
                      make_socket_recv_edge(std::move(in), window.view(), path), kNoAbort);
    fill_with_integers();
    ring.run({0, elements}, 0);
    ring.drain();
    expect_integer_sums(world, {0, elements}, window.view());
    fill_with_integers();
    ring.run({0, elements}, 0, CollectiveKind::kReduceScatter);
    ring.drain();
    expect_own_integer_sums(rank, world, {0, elements}, window.view());
    fill_with_bits(rank, window.view());
    ring.run({0, elements}, 0, CollectiveKind::kAllGather);
    ring.drain();
    expect_owners_bits(rank, world, {0, elements}, window.view());
  });
}

enum class Broken { kNothing, kFlush, kReduce, kCopy, kEnd, kDrained };

/// Of the call `here`, with `broken` the one that finds the connection broken.
bool whole_unless(Broken broken, Broken here) {
  if (broken == here) {
    throw PeerLostError("the connection broke");
  }
  return true;
}

/// Edges over which everything is there at once, until one of them breaks.
class BrokenSendEdge final : public SendEdge {
 public:
  explicit BrokenSendEdge(Broken broken) : broken_(broken) {}
  void begin(const CollectiveHeader& /*header*/) override {}
  void publish(Range /*range*/) override {}
  bool flush() override { return whole_unless(broken_, Broken::kFlush); }
  bool drained() override { return whole_unless(broken_, Broken::kDrained); }
  void sleep(std::chrono::microseconds /*limit*/) override {}

 private:
  Broken broken_;
};

class BrokenRecvEdge final : public RecvEdge {
 public:
  BrokenRecvEdge(Broken broken, const CollectiveHeader& header)
      : broken_(broken), header_(header) {}
  bool try_begin(CollectiveHeader* header) override {
    *header = header_;
    return true;
  }
  bool try_reduce(Range /*range*/) override { return whole_unless(broken_, Broken::kReduce); }
  bool try_copy(Range /*range*/) override { return whole_unless(broken_, Broken::kCopy); }
  void end() override { whole_unless(broken_, Broken::kEnd); }
  void sleep(std::chrono::microseconds /*limit*/) override {}

 private:
  Broken broken_;
  CollectiveHeader header_;
};

/// What rank 1 of three says, whose predecessor is 0 and whose successor is 2.
std::string complaint_about(Broken broken, CollectiveKind kind = CollectiveKind::kAllReduce) {
  constexpr Range range{0, 3 * kS};
  constexpr int bucket = 4;
  RingOptions options;
  options.rank = 1;
  options.world_size = 3;
  RingExecutor ring(options, std::make_unique<BrokenSendEdge>(broken),
                    std::make_unique<BrokenRecvEdge>(
                        broken, CollectiveHeader{1, range, sizeof(float), bucket, kind}),
                    kNoAbort);
  try {
    ring.run(range, bucket, kind);
    ring.drain();
  } catch (const PeerLostError& error) {
    return error.what();
  }
  return "";
}

TEST(Ring, NamesTheNeighbourToWhichAConnectionBroke) {
  EXPECT_EQ(complaint_about(Broken::kNothing), "");
  for (const Broken broken : {Broken::kReduce, Broken::kCopy, Broken::kEnd}) {
    EXPECT_THAT(complaint_about(broken),
                HasSubstr("rank 1 lost rank 0 in the all-reduce of bucket 4 ("));
  }
  for (const Broken broken : {Broken::kFlush, Broken::kDrained}) {
    EXPECT_THAT(complaint_about(broken),
                HasSubstr("rank 1 lost rank 2 in the all-reduce of bucket 4 ("));
  }
  EXPECT_THAT(complaint_about(Broken::kReduce, CollectiveKind::kReduceScatter),
              HasSubstr("rank 1 lost rank 0 in the reduce-scatter of bucket 4 (reduce"));
  EXPECT_THAT(complaint_about(Broken::kCopy, CollectiveKind::kAllGather),
              HasSubstr("rank 1 lost rank 0 in the all-gather of bucket 4 (copy"));
}

TEST(Ring, DoesNotDeadlockWithTheSmallestSocketBuffers) {
  for (const int world : {2, 3}) {
    sum_over_smallest_buffers(world, SocketPath::kNetwork);
    sum_over_smallest_buffers(world, SocketPath::kLoopback);
  }
}

}  // namespace
}  // namespace lockstep
