// The communicator between real processes, with the real control plane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/control_plane.h"
#include "comm/peer_table.h"
#include "comm/ring_schedule.h"
#include "comm/run_under.h"
#include "core/base/arena_shard.h"
#include "core/base/error.h"
#include "support/mpi_environment.h"
#include "support/ring_inputs.h"
#include "support/unmappable_bootstrap.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kS = kSegmentElements;

enum class Ring { kShm, kSocket, kMixed };

struct Member {
  int rank;
  int world_size;
  Communicator<CpuDevice>& comm;
  CpuStream& stream;
  CpuView<float> window;
};

/// Runs `body` with a communicator over all ranks; what the group ends with.
ExitCode run_group(Ring ring, int64_t elements, const std::function<void(Member&)>& body,
                   milliseconds timeout = milliseconds(60000), std::string* message = nullptr,
                   int lanes = 1) {
  const PeerTable peers = gather_peer_table(test_bootstrap());
  ControlPlane control(test_bootstrap(), peers, {});
  try {
    run_under(control, [&] {
      CommunicatorOptions options;
      options.window_elements = elements;
      options.collective_timeout = timeout;
      options.transport = ring == Ring::kSocket ? TransportChoice::kSocket : TransportChoice::kAuto;
      options.ring_lanes = lanes;
      UnmappableBootstrap unmappable(test_bootstrap());
      Communicator<CpuDevice> comm(ring == Ring::kMixed ? unmappable : test_bootstrap(), peers,
                                   control, options);
      EXPECT_EQ(comm.transport_name(), ring == Ring::kShm      ? "shm"
                                       : ring == Ring::kSocket ? "socket"
                                                               : "shm+socket");
      CpuStream stream;
      Member member{test_bootstrap().rank(), test_bootstrap().world_size(), comm, stream,
                    comm.window()};
      body(member);
    });
  } catch (const Error& error) {
    if (message != nullptr) {
      *message = error.what();
    }
    return error.code();
  }
  return ExitCode::kDone;
}

class CommunicatorOver : public testing::TestWithParam<Ring> {};

INSTANTIATE_TEST_SUITE_P(Transports, CommunicatorOver,
                         testing::Values(Ring::kShm, Ring::kSocket, Ring::kMixed));

TEST_P(CommunicatorOver, SumsRangesOfEverySizeExactly) {
  const auto body = [](Member& self) {
    for (const Range range :
         {Range{0, 1}, Range{kS - 1, kS + 1}, Range{77, 77 + 2047}, Range{3, 3}, Range{0, kS},
          Range{9 * kS, 9 * kS + 100}, Range{kS / 2, 9 * kS + 5}}) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        self.window[i] = integer_at(self.rank, i);
      }
      self.comm.all_reduce(self.stream, range, 4);
      self.comm.finish(self.stream);
      for (int64_t i = range.begin; i < range.end; ++i) {
        float expected = 0;
        for (int rank = 0; rank < self.world_size; ++rank) {
          expected += integer_at(rank, i);
        }
        ASSERT_EQ(self.window[i], expected) << "element " << i;
      }
    }
    EXPECT_GT(self.comm.take_times().total_seconds, 0);
    EXPECT_EQ(self.comm.take_times().total_seconds, 0);
  };
  EXPECT_EQ(run_group(GetParam(), 9 * kS + 100, body), ExitCode::kDone);
}

// What finish() takes is exposed, and hidden only what was done before it began.
TEST_P(CommunicatorOver, CountsTimeAsHiddenOrExposedNeverTwice) {
  const auto body = [](Member& self) {
    for (int round = 0; round < 50; ++round) {
      self.comm.all_reduce(self.stream, {0, 8}, 0);  // too small to wake the comm thread
      self.comm.finish(self.stream);
      const CommTimes times = self.comm.take_times();
      EXPECT_GT(times.exposed_seconds, 0);
      EXPECT_EQ(times.total_seconds, times.exposed_seconds);
    }
    // Two sums after rounds of one: finish() is not to be expected now, so the comm thread works.
    self.comm.all_reduce(self.stream, {kS, 9 * kS}, 0);
    self.comm.all_reduce(self.stream, {0, kS}, 1);
    double hidden = 0;
    while (hidden == 0) {
      std::this_thread::sleep_for(milliseconds(1));
      hidden = self.comm.take_times().total_seconds;
    }
    self.comm.finish(self.stream);
    const CommTimes times = self.comm.take_times();
    EXPECT_GT(times.exposed_seconds, 0);
    EXPECT_GE(times.total_seconds, times.exposed_seconds);
  };
  EXPECT_EQ(run_group(GetParam(), 9 * kS, body), ExitCode::kDone);
}

TEST_P(CommunicatorOver, KeepsThousandsOfSmallSumsApart) {
  const auto body = [](Member& self) {
    const int n = self.world_size;
    const int sum_of_ranks = n * (n - 1) / 2;
    for (int round = 0; round < 3000; ++round) {
      const int64_t begin = round % 40;
      self.window[begin] = static_cast<float>(self.rank + round);
      self.window[begin + 5] = static_cast<float>(2 * self.rank);
      self.comm.all_reduce(self.stream, {begin, begin + 1 + round % 4}, round);
      self.comm.all_reduce(self.stream, {begin + 5, begin + 6}, round);
      self.comm.finish(self.stream);
      ASSERT_EQ(self.window[begin], static_cast<float>(sum_of_ranks + n * round));
      ASSERT_EQ(self.window[begin + 5], static_cast<float>(n * (n - 1)));
      std::fill(self.window.begin(), self.window.end(), 0.0F);
    }
  };
  EXPECT_EQ(run_group(GetParam(), 64, body), ExitCode::kDone);
}

/// Everyone's window after reals, whose sums depend on the order, were summed in this division: by
/// all-reduce, or in shards that were gathered after everybody had overwritten what it does not
/// own.
std::vector<std::string> windows_after(Ring ring, int lanes, const std::vector<Range>& division,
                                       bool in_shards) {
  std::string bytes;
  const auto body = [&](Member& self) {
    for (int64_t i = 0; i < self.window.size(); ++i) {
      self.window[i] = real_at(self.rank, i);
    }
    int bucket = 0;
    for (const Range& range : division) {
      if (in_shards) {
        self.comm.reduce_scatter(self.stream, range, bucket++);
      } else {
        self.comm.all_reduce(self.stream, range, bucket++);
      }
    }
    self.comm.finish(self.stream);
    if (in_shards) {
      const ArenaShard own = {self.rank, self.world_size};
      for (int64_t i = 0; i < self.window.size(); ++i) {
        self.window[i] = own.owns(i) ? self.window[i] : -1.0F;
      }
      for (const Range& range : division) {
        self.comm.all_gather(self.stream, range, bucket++);
      }
      self.comm.finish(self.stream);
    }
    bytes.assign(reinterpret_cast<const char*>(self.window.data()),
                 static_cast<size_t>(self.window.size()) * sizeof(float));
  };
  EXPECT_EQ(run_group(ring, 60 * kS + 9, body, milliseconds(60000), nullptr, lanes),
            ExitCode::kDone);
  return test_bootstrap().all_gather(bytes);
}

TEST(Communicator, GivesTheSameBitsOnEveryRankTransportDivisionAndLane) {
  const std::vector<Range> whole = {{0, 60 * kS + 9}};
  const std::vector<Range> divided = {{7 * kS + 1, 60 * kS + 9}, {kS, 7 * kS + 1}, {0, 5}, {5, kS}};
  const std::string reference = windows_after(Ring::kShm, 1, whole, false)[0];
  for (const Ring ring : {Ring::kShm, Ring::kSocket, Ring::kMixed}) {
    for (const std::vector<Range>& division : {whole, divided}) {
      for (const int lanes : {1, 3}) {
        for (const bool in_shards : {false, true}) {
          for (const std::string& window : windows_after(ring, lanes, division, in_shards)) {
            EXPECT_TRUE(window == reference);
          }
        }
      }
    }
  }
}

TEST_P(CommunicatorOver, EveryRankLeavesWhenOneCallsAnotherSum) {
  const auto body = [](Member& self) {
    self.comm.all_reduce(self.stream, {0, 10}, 0);
    self.comm.finish(self.stream);
    self.comm.all_reduce(self.stream, {0, self.rank == 0 ? 50 : 40}, 1);
    self.comm.finish(self.stream);
  };
  EXPECT_EQ(run_group(GetParam(), 64, body), ExitCode::kRanksDisagree);
}

TEST_P(CommunicatorOver, EveryRankLeavesWhenOneCallsAnotherWork) {
  const auto body = [](Member& self) {
    self.comm.reduce_scatter(self.stream, {0, 10}, 0);
    self.comm.finish(self.stream);
    if (self.rank == 0) {
      self.comm.all_reduce(self.stream, {0, 50}, 1);
    } else {
      self.comm.reduce_scatter(self.stream, {0, 50}, 1);
    }
    self.comm.finish(self.stream);
  };
  std::string message;
  EXPECT_EQ(run_group(GetParam(), 64, body, milliseconds(60000), &message),
            ExitCode::kRanksDisagree);
  EXPECT_THAT(message, testing::HasSubstr("rank 0 is in collective 2 (all-reduce), bucket 1"));
  EXPECT_THAT(message, testing::HasSubstr("is in collective 2 (reduce-scatter), bucket 1"));
}

TEST_P(CommunicatorOver, RefusesARangeThatIsNotFinished) {
  const auto body = [](Member& self) {
    self.comm.reduce_scatter(self.stream, {0, 10}, 0);
    EXPECT_ANY_THROW(self.comm.all_gather(self.stream, {9, 12}, 1));
    self.comm.finish(self.stream);
    self.comm.all_gather(self.stream, {9, 12}, 1);
    EXPECT_ANY_THROW(self.comm.reduce_scatter(self.stream, {0, 10}, 2));
    self.comm.finish(self.stream);
  };
  EXPECT_EQ(run_group(GetParam(), 64, body), ExitCode::kDone);
}

TEST_P(CommunicatorOver, EveryRankLeavesWhenOneDoesNotCome) {
  const auto body = [](Member& self) {
    if (self.rank == 0) {
      while (true) {  // alive, and elsewhere
        self.comm.all_reduce(self.stream, {0, 0}, 0);
        ::usleep(10000);
      }
    }
    self.comm.all_reduce(self.stream, {0, 10}, 1);
    self.comm.finish(self.stream);
  };
  std::string message;
  EXPECT_EQ(run_group(GetParam(), 64, body, milliseconds(300), &message), ExitCode::kTimeout);
  EXPECT_THAT(message, testing::HasSubstr("for rank 0 in the all-reduce of bucket 1"));
}

TEST(Communicator, LeavesNoFileBehind) {
  const auto lockstep_files = [] {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      count += entry.path().filename().string().find("lockstep") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(run_group(Ring::kShm, 1 << 20, [&](Member&) { EXPECT_EQ(lockstep_files(), 0); }),
            ExitCode::kDone);
}

}  // namespace
}  // namespace lockstep
