// The communicator of windows in GPU memory, between real processes: over every transport that the
// ranks can have.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "comm/control_plane.h"
#include "comm/cuda/communicator.h"
#include "comm/peer_table.h"
#include "comm/ring_schedule.h"
#include "comm/run_under.h"
#include "comm/transport_select.h"
#include "core/base/arena_shard.h"
#include "core/base/error.h"
#include "support/mpi_environment.h"
#include "support/ring_inputs.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kS = kSegmentElements;

struct Member {
  int rank;
  int world_size;
  Communicator<CudaDevice>& comm;
  CudaStream& stream;
  std::vector<float> host;  ///< as long as the window

  void upload() { copy_from_host(stream, comm.window(), host.data()); }
  void download() { copy_to_host(stream, host.data(), CudaView<const float>(comm.window())); }
};

/// Not a transport: peer access, with copy engines.
constexpr const char* kCopies = "copies";

TransportChoice choice_of(const std::string& transport) {
  return transport_choice(transport == kCopies ? "peer" : transport);
}

/// Runs `body` with a communicator over all ranks; what the group ends with. Ranks share GPUs where
/// there are too few.
ExitCode run_group(const std::string& transport, int64_t elements,
                   const std::function<void(Member&)>& body,
                   milliseconds timeout = milliseconds(60000), std::string* message = nullptr) {
  const PeerTable peers = gather_peer_table(test_bootstrap());
  use_cuda_device(test_bootstrap().rank() % cuda_device_count());
  ControlPlane control(test_bootstrap(), peers, {});
  try {
    run_under(control, [&] {
      CommunicatorOptions options;
      options.window_elements = elements;
      options.collective_timeout = timeout;
      options.copy_engines = transport == kCopies;
      options.transport = choice_of(transport);
      Communicator<CudaDevice> comm(test_bootstrap(), peers, control, options);
      EXPECT_THAT(comm.transport_name(), testing::HasSubstr(transport_word(options.transport)));
      CudaStream stream;
      Member member{test_bootstrap().rank(), test_bootstrap().world_size(), comm, stream,
                    std::vector<float>(static_cast<size_t>(elements))};
      body(member);
      stream.synchronize();
    });
  } catch (const Error& error) {
    if (message != nullptr) {
      *message = error.what();
    }
    return error.code();
  }
  return ExitCode::kDone;
}

std::vector<std::string> transports() {
  std::vector<std::string> words = {"peer", "shm", "socket"};
  if (test_bootstrap().world_size() == 2) {
    words.emplace_back("staged");
    words.emplace_back(kCopies);
  }
  // NCCL serves no ranks that share a GPU.
  if (::dlopen("libnccl.so.2", RTLD_LAZY) != nullptr &&
      test_bootstrap().world_size() <= cuda_device_count()) {
    words.emplace_back("nccl");
  }
  return words;
}

/// The suite over all transports: which there are depends on the number of ranks.
void over_all(const std::function<void(const std::string&)>& body) {
  for (const std::string& transport : transports()) {
    SCOPED_TRACE(transport);
    body(transport);
  }
}

/// As over_all, without NCCL.
void over_all_of_ours(const std::function<void(const std::string&)>& body) {
  over_all([&](const std::string& transport) {
    if (transport != "nccl") {
      body(transport);
    }
  });
}

/// Over peer access alone, by kernels and, of two ranks, by copies too.
void over_peer_access(const std::function<void(const std::string&)>& body) {
  body("peer");
  if (test_bootstrap().world_size() == 2) {
    body(kCopies);
  }
}

bool has_shards(const std::string& transport) {
  return transport != "nccl" && transport != "staged";
}

/// Over those transports that sum by halves.
void over_shards(const std::function<void(const std::string&)>& body) {
  over_all([&](const std::string& transport) {
    if (has_shards(transport)) {
      body(transport);
    }
  });
}

void expect_sums(const Member& self, Range range, int round) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    float expected = 0;
    for (int rank = 0; rank < self.world_size; ++rank) {
      expected += integer_at(rank, i + round);
    }
    ASSERT_EQ(self.host[static_cast<size_t>(i)], expected)
        << "element " << i << " in round " << round;
  }
}

/// As expect_sums, of what this rank owns.
void expect_own_sums(const Member& self, Range range, int round) {
  const ArenaShard shard{self.rank, self.world_size};
  for (int64_t begin = range.begin; begin < range.end;) {
    const int64_t end = std::min(range.end, (begin / kS + 1) * kS);
    if (shard.owns(begin)) {
      expect_sums(self, {begin, end}, round);
    }
    begin = end;
  }
}

void expect_untouched_beside(const Member& self, Range range, int round) {
  for (int64_t i = 0; i < static_cast<int64_t>(self.host.size()); ++i) {
    if (i < range.begin || i >= range.end) {
      ASSERT_EQ(self.host[static_cast<size_t>(i)], integer_at(self.rank, i + round))
          << "element " << i;
    }
  }
}

void fill(Member& self, int round) {
  for (int64_t i = 0; i < static_cast<int64_t>(self.host.size()); ++i) {
    self.host[static_cast<size_t>(i)] = integer_at(self.rank, i + round);
  }
  self.upload();
}

constexpr Range kRanges[] = {{0, 1},           {kS - 1, kS + 1},       {77, 77 + 2047},
                             {0, kS},          {9 * kS, 9 * kS + 100}, {kS / 2, 9 * kS + 5},
                             {3, 40 * kS - 1}, {0, 130 * kS + 7}};

TEST(GpuCommunicator, SumsRangesOfEverySizeExactly) {
  over_all([&](const std::string& transport) {
    const auto body = [&](Member& self) {
      int round = 0;
      for (const SumLoad load : {SumLoad::kBeside, SumLoad::kAlone}) {
        for (const Range range : kRanges) {
          fill(self, ++round);
          self.comm.all_reduce(self.stream, range, 4, load);
          self.comm.finish(self.stream);
          self.download();
          self.comm.take_times();
          expect_sums(self, range, round);
          expect_untouched_beside(self, range, round);
        }
      }
    };
    EXPECT_EQ(run_group(transport, 130 * kS + 7, body), ExitCode::kDone);
  });
}

TEST(GpuCommunicator, SumsAgainEachTimeThatAGraphIsLaunched) {
  const int64_t size = 200 * kS + 3;
  const std::vector<Range> buckets = {{140 * kS, size},
                                      {139 * kS, 140 * kS},
                                      {80 * kS + 5, 139 * kS},
                                      {kS + 5, 80 * kS + 5},
                                      {0, kS + 5}};
  over_all([&](const std::string& transport) {
    const auto body = [&](Member& self) {
      const auto sums = [&] {
        int bucket = 0;
        for (const Range range : buckets) {
          self.comm.all_reduce(self.stream, range, bucket++);
        }
        self.comm.finish(self.stream);
      };
      fill(self, 0);
      sums();
      std::vector<CudaGraph> graphs;
      graphs.emplace_back(self.stream, sums);
      graphs.emplace_back(self.stream, sums);
      for (int round = 1; round <= 20; ++round) {
        fill(self, round);
        graphs[static_cast<size_t>(round % 2)].launch(self.stream);
        self.download();
        self.comm.take_times();
        expect_sums(self, {0, size}, round);
      }
    };
    EXPECT_EQ(run_group(transport, size, body), ExitCode::kDone);
  });
}

// With copies the large ones in several pieces where nothing follows.
TEST(GpuCommunicator, SumsRoundsOfLargeAndSmallRangesOverPeerAccess) {
  constexpr int64_t kMi = 1 << 20;
  const int64_t size = 28 * kMi + 7;
  const auto body = [&](Member& self) {
    const auto beside = [&] {
      self.comm.all_reduce(self.stream, {22 * kMi + 1, size}, 0);
      self.comm.all_reduce(self.stream, {22 * kMi - 50, 22 * kMi + 1}, 1);
      self.comm.all_reduce(self.stream, {15 * kMi + 3, 22 * kMi - 50}, 2);
      self.comm.all_reduce(self.stream, {0, 15 * kMi + 3}, 3, SumLoad::kAlone);
      self.comm.finish(self.stream);
    };
    const auto behind = [&] {
      self.comm.all_reduce(self.stream, {0, size}, 0, SumLoad::kAlone);
      self.comm.finish(self.stream);
    };
    beside();
    behind();
    std::vector<CudaGraph> graphs;
    graphs.emplace_back(self.stream, beside);
    graphs.emplace_back(self.stream, behind);
    graphs.emplace_back(self.stream, beside);
    for (int round = 1; round <= 6; ++round) {
      fill(self, round);
      graphs[static_cast<size_t>(round % 3)].launch(self.stream);
      self.download();
      EXPECT_GT(self.comm.take_times().total_seconds, 0);
      expect_sums(self, {0, size}, round);
    }
  };
  over_peer_access([&](const std::string& transport) {
    EXPECT_EQ(run_group(transport, size, body), ExitCode::kDone);
  });
}

TEST(GpuCommunicator, SumsByHalves) {
  const auto body = [](Member& self) {
    ASSERT_TRUE(self.comm.has_shards());
    int round = 0;
    for (const SumLoad load : {SumLoad::kBeside, SumLoad::kAlone}) {
      for (const Range range : kRanges) {
        fill(self, ++round);
        self.comm.reduce_scatter(self.stream, range, 4, load);
        self.comm.finish(self.stream);
        self.download();
        self.comm.take_times();
        expect_own_sums(self, range, round);
        expect_untouched_beside(self, range, round);
        self.comm.all_gather(self.stream, range, 5, load);
        self.comm.finish(self.stream);
        self.download();
        self.comm.take_times();
        expect_sums(self, range, round);
        expect_untouched_beside(self, range, round);
      }
    }
  };
  over_shards([&](const std::string& transport) {
    EXPECT_EQ(run_group(transport, 130 * kS + 7, body), ExitCode::kDone);
  });
}

TEST(GpuCommunicator, SumsByHalvesEachTimeThatAGraphIsLaunched) {
  const int64_t size = 90 * kS + 3;
  const std::vector<Range> buckets = {{40 * kS + 7, size}, {kS + 5, 40 * kS + 7}, {0, kS + 5}};
  const auto body = [&](Member& self) {
    const auto halves = [&] {
      int bucket = 0;
      for (const Range range : buckets) {
        self.comm.reduce_scatter(self.stream, range, bucket++);
      }
      self.comm.finish(self.stream);
      self.comm.all_gather(self.stream, {0, size}, bucket, SumLoad::kAlone);
      self.comm.finish(self.stream);
    };
    const auto mixed = [&] {
      self.comm.reduce_scatter(self.stream, buckets[0], 0);
      self.comm.all_reduce(self.stream, buckets[1], 1);
      self.comm.finish(self.stream);
      self.comm.all_reduce(self.stream, buckets[2], 2);
      self.comm.all_gather(self.stream, buckets[0], 0);
      self.comm.finish(self.stream);
    };
    fill(self, 0);
    halves();
    mixed();
    std::vector<CudaGraph> graphs;
    graphs.emplace_back(self.stream, halves);
    graphs.emplace_back(self.stream, mixed);
    for (int round = 1; round <= 20; ++round) {
      fill(self, round);
      graphs[static_cast<size_t>(round % 2)].launch(self.stream);
      self.download();
      self.comm.take_times();
      expect_sums(self, {0, size}, round);
    }
  };
  over_shards([&](const std::string& transport) {
    EXPECT_EQ(run_group(transport, size, body), ExitCode::kDone);
  });
}

TEST(GpuCommunicator, HasNoHalvesOfStagedCopiesAndNccl) {
  over_all([](const std::string& transport) {
    const auto body = [&](Member& self) {
      EXPECT_EQ(self.comm.has_shards(), has_shards(transport));
      if (!self.comm.has_shards()) {
        EXPECT_THROW(self.comm.reduce_scatter(self.stream, {0, 10}, 0), InternalError);
        EXPECT_THROW(self.comm.all_gather(self.stream, {0, 10}, 0), InternalError);
      }
      // What was refused is not waited for.
      self.comm.finish(self.stream);
      fill(self, 1);
      self.comm.all_reduce(self.stream, {0, 10}, 0);
      self.comm.finish(self.stream);
      self.download();
      expect_sums(self, {0, 10}, 1);
    };
    EXPECT_EQ(run_group(transport, 10, body), ExitCode::kDone);
  });
}

TEST(GpuCommunicator, GivesTheBitsOfTheCpu) {
  const int64_t size = 90 * kS + 9;
  const std::vector<Range> whole = {{0, size}};
  const std::vector<Range> divided = {{7 * kS + 1, size}, {kS, 7 * kS + 1}, {0, 5}, {5, kS}};
  std::vector<float> reference(static_cast<size_t>(size));
  {
    const PeerTable peers = gather_peer_table(test_bootstrap());
    ControlPlane control(test_bootstrap(), peers, {});
    run_under(control, [&] {
      CommunicatorOptions options;
      options.window_elements = size;
      Communicator<CpuDevice> comm(test_bootstrap(), peers, control, options);
      for (int64_t i = 0; i < size; ++i) {
        comm.window()[i] = real_at(test_bootstrap().rank(), i);
      }
      CpuStream stream;
      comm.all_reduce(stream, {0, size}, 0);
      comm.finish(stream);
      std::copy(comm.window().begin(), comm.window().end(), reference.begin());
    });
  }
  over_all([&](const std::string& transport) {
    if (!has_ring_bits(choice_of(transport), test_bootstrap().world_size())) {
      return;
    }
    for (const std::vector<Range>& division : {whole, divided}) {
      const auto body = [&](Member& self) {
        for (int64_t i = 0; i < size; ++i) {
          self.host[static_cast<size_t>(i)] = real_at(self.rank, i);
        }
        self.upload();
        int bucket = 0;
        for (const Range& range : division) {
          self.comm.all_reduce(self.stream, range, bucket++);
        }
        self.comm.finish(self.stream);
        self.download();
        EXPECT_TRUE(self.host == reference);
      };
      EXPECT_EQ(run_group(transport, size, body), ExitCode::kDone);
    }
  });
}

// NCCL does not find this.
TEST(GpuCommunicator, EveryRankLeavesWhenOneCallsAnotherSum) {
  over_all_of_ours([&](const std::string& transport) {
    const auto body = [](Member& self) {
      for (int64_t end : {int64_t{100}, int64_t{self.rank == 0 ? 500 : 400}}) {
        self.comm.all_reduce(self.stream, {0, end}, 0);
        self.comm.finish(self.stream);
        self.stream.synchronize();
        self.comm.take_times();
      }
    };
    EXPECT_EQ(run_group(transport, 600, body, milliseconds(2000)), ExitCode::kRanksDisagree);
  });
}

TEST(GpuCommunicator, EveryRankLeavesWhenOneCallsAnotherLargeSumOverPeerAccess) {
  constexpr int64_t kLarge = 5 << 20;
  for (const int64_t other : {kLarge - 4, int64_t{100}}) {
    const auto body = [&](Member& self) {
      for (const int64_t end : {kLarge, self.rank == 0 ? kLarge : other}) {
        self.comm.all_reduce(self.stream, {0, end}, 0);
        self.comm.finish(self.stream);
        self.stream.synchronize();
        self.comm.take_times();
      }
    };
    over_peer_access([&](const std::string& transport) {
      EXPECT_EQ(run_group(transport, kLarge, body, milliseconds(2000)), ExitCode::kRanksDisagree)
          << other << " over " << transport;
    });
  }
}

TEST(GpuCommunicator, EveryRankLeavesWhenOneCallsAnotherHalfOverPeerAccess) {
  for (const int64_t size : {int64_t{100}, int64_t{5} << 20}) {
    const auto body = [&](Member& self) {
      self.comm.reduce_scatter(self.stream, {0, size}, 0);
      self.comm.finish(self.stream);
      if (self.rank == 0) {
        self.comm.reduce_scatter(self.stream, {0, size}, 1);
      } else {
        self.comm.all_gather(self.stream, {0, size}, 1);
      }
      self.comm.finish(self.stream);
      self.stream.synchronize();
      self.comm.take_times();
    };
    over_peer_access([&](const std::string& transport) {
      EXPECT_EQ(run_group(transport, size, body, milliseconds(2000)), ExitCode::kRanksDisagree)
          << size << " over " << transport;
    });
  }
}

TEST(GpuCommunicator, EveryRankLeavesWhenOneCallsAHalfInPlaceOfASumOverPeerAccess) {
  // The second size goes by copies where they are asked for.
  for (const int64_t size : {int64_t{100}, int64_t{5} << 20}) {
    const auto body = [&](Member& self) {
      if (self.rank == 0) {
        self.comm.reduce_scatter(self.stream, {0, size}, 0);
      } else {
        self.comm.all_reduce(self.stream, {0, size}, 0);
      }
      self.comm.finish(self.stream);
      self.stream.synchronize();
      self.comm.take_times();
    };
    over_peer_access([&](const std::string& transport) {
      EXPECT_EQ(run_group(transport, size, body, milliseconds(2000)), ExitCode::kRanksDisagree)
          << size << " over " << transport;
    });
  }
}

TEST(GpuCommunicator, EveryRankLeavesWhenOneSumsOneMoreOverPeerAccess) {
  constexpr int64_t kLarge = 5 << 20;
  const auto body = [&](Member& self) {
    for (int step = 0; step < 2; ++step) {
      self.comm.all_reduce(self.stream, {0, kLarge}, 0);
      if (self.rank == 0) {
        self.comm.all_reduce(self.stream, {kLarge, 2 * kLarge}, 1);
      }
      self.comm.finish(self.stream);
    }
    self.stream.synchronize();
    self.comm.take_times();
  };
  over_peer_access([&](const std::string& transport) {
    EXPECT_EQ(run_group(transport, 2 * kLarge, body, milliseconds(2000)), ExitCode::kRanksDisagree)
        << transport;
  });
}

// The second size goes by copies where they are asked for.
TEST(GpuCommunicator, EveryRankLeavesWhenOneDoesNotCome) {
  over_all([&](const std::string& transport) {
    for (const int64_t size : {10, 5 << 20}) {
      const auto body = [&](Member& self) {
        if (self.rank == 0) {
          while (true) {  // alive, and elsewhere
            self.comm.all_reduce(self.stream, {0, 0}, 0);
            ::usleep(10000);
          }
        }
        self.comm.all_reduce(self.stream, {0, size}, 1);
        self.comm.finish(self.stream);
        self.stream.synchronize();
        self.comm.take_times();
      };
      std::string message;
      EXPECT_EQ(run_group(transport, size, body, milliseconds(300), &message), ExitCode::kTimeout);
      const bool named = transport != "nccl" || test_bootstrap().world_size() == 2;
      EXPECT_THAT(message,
                  testing::HasSubstr(named ? "rank 0 " : "a rank that NCCL does not name"));
      EXPECT_THAT(message, testing::HasSubstr("in the all-reduce of bucket 1"));
    }
  });
}

TEST(GpuCommunicator, EveryRankLeavesWithTheErrorOfOne) {
  over_all([&](const std::string& transport) {
    for (const int64_t size : {10, 5 << 20}) {
      const auto body = [&](Member& self) {
        const auto sum = [&] {
          self.comm.all_reduce(self.stream, {0, size}, 0);
          self.comm.finish(self.stream);
        };
        sum();
        CudaGraph graph(self.stream, sum);
        if (self.rank == 0) {
          throw IoError("the disk is full");
        }
        graph.launch(self.stream);
        self.stream.synchronize();
        self.comm.take_times();
      };
      EXPECT_EQ(run_group(transport, size, body), ExitCode::kIo);
    }
  });
}

}  // namespace
}  // namespace lockstep
