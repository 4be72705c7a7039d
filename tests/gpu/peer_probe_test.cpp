// The peer probe under mpirun, each rank on a GPU of its own as far as they go: the mapping that
// collectives use passes, and mappings that lie are caught at the stage that their lie is for.
#include "comm/cuda/peer_probe.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "comm/cuda/peer_memory.h"
#include "support/mpi_environment.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

/// The mapping as it is; tests override it with what a lying machine would do.
class Mapping : public PeerMapping {
 public:
  Mapping(Bootstrap& bootstrap, const PeerTable& peers)
      : rank_(bootstrap.rank()),
        bootstrap_(bootstrap),
        memory_(bootstrap, peers, kProbeBytes),
        scratch_(kProbeBytes),
        kept_(kProbeBytes) {}

  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Mapping(Mapping&&) = delete;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() override {
    memory_.leave(bootstrap_, [] { return false; });
  }

  std::byte* of(int rank) override { return memory_.of(rank); }

 protected:
  std::byte* scratch() { return scratch_.view().data(); }
  std::byte* kept() { return kept_.view().data(); }
  bool own(int rank) const { return rank == rank_; }

  int rank_;

 private:
  Bootstrap& bootstrap_;
  PeerMemory memory_;
  CudaBuffer<std::byte> scratch_;
  CudaBuffer<std::byte> kept_;
};

/// From its use number `from` on, what goes to others lands in the writer's own scratch memory and
/// is read back from there. With `liar`, on that rank alone.
class Mirror : public Mapping {
 public:
  Mirror(Bootstrap& bootstrap, const PeerTable& peers, int from = 0, int liar = -1)
      : Mapping(bootstrap, peers), from_(from), lies_(liar < 0 || liar == rank_) {}

  std::byte* of(int rank) override {
    if (own(rank) || !lies_) {
      return Mapping::of(rank);
    }
    return uses_++ < from_ ? Mapping::of(rank) : scratch();
  }

 private:
  int from_;
  bool lies_;
  int uses_ = 0;
};

/// Nothing arrives, and the owner sees zeros.
class Zeros : public Mapping {
 public:
  using Mapping::Mapping;

  std::byte* of(int rank) override {
    if (!own(rank)) {
      return scratch();
    }
    CudaStream stream;
    set_zero_bytes(stream, Mapping::of(rank), kProbeBytes);
    stream.synchronize();
    return Mapping::of(rank);
  }
};

/// The first epoch's values arrive. From then on the owner sees those, whatever is written.
class Stale : public Mapping {
 public:
  using Mapping::Mapping;

  std::byte* of(int rank) override {
    if (!own(rank)) {
      return uses_ < kUsesOfAnEpoch ? Mapping::of(rank) : scratch();
    }
    CudaStream stream;
    if (++uses_ == kUsesOfAnEpoch) {
      copy_bytes(stream, kept(), Mapping::of(rank), kProbeBytes);
    } else if (uses_ > kUsesOfAnEpoch) {
      copy_bytes(stream, Mapping::of(rank), kept(), kProbeBytes);
    }
    stream.synchronize();
    return Mapping::of(rank);
  }

 private:
  static constexpr int kUsesOfAnEpoch = 3;  // its own values, its look by a kernel and by a copy
  int uses_ = 0;
};

/// All arrives, but what is copied at its use number `use` only long after the mark that is copied
/// behind it.
class Overtaken : public Mapping {
 public:
  Overtaken(Bootstrap& bootstrap, const PeerTable& peers, int use, int liar = -1)
      : Mapping(bootstrap, peers), use_(use), lies_(liar < 0 || liar == rank_) {}

  Overtaken(const Overtaken&) = delete;
  Overtaken& operator=(const Overtaken&) = delete;
  Overtaken(Overtaken&&) = delete;
  Overtaken& operator=(Overtaken&&) = delete;
  ~Overtaken() override { late_.synchronize(); }

  std::byte* of(int rank) override {
    if (own(rank) || !lies_) {
      return Mapping::of(rank);
    }
    const int use = uses_++;
    if (use == use_) {
      return scratch();
    }
    if (use == use_ + 1) {
      late_.call_host([](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); },
                      nullptr);
      copy_bytes(late_, Mapping::of(rank) + kProbeSpan.begin, scratch() + kProbeSpan.begin,
                 kProbeSpan.size());
    }
    return Mapping::of(rank);
  }

 private:
  int use_;
  bool lies_;
  int uses_ = 0;
  CudaStream late_;
};

/// All arrives, at the pace of a bad link.
class Slow : public Mapping {
 public:
  using Mapping::Mapping;

  std::byte* of(int rank) override {
    if (!own(rank)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return Mapping::of(rank);
  }
};

/// Over this bootstrap the memory of rank 0 cannot be mapped.
class WithoutHandle final : public Bootstrap {
 public:
  explicit WithoutHandle(Bootstrap& bootstrap) : bootstrap_(bootstrap) {}
  int rank() const override { return bootstrap_.rank(); }
  int world_size() const override { return bootstrap_.world_size(); }
  std::vector<std::string> all_gather(std::string_view bytes) override {
    const bool handle = bytes.size() == sizeof(cudaIpcMemHandle_t);
    return bootstrap_.all_gather(handle && rank() == 0 ? std::string_view() : bytes);
  }
  void barrier() override { bootstrap_.barrier(); }

 private:
  Bootstrap& bootstrap_;
};

class PeerProbe : public testing::Test {
 protected:
  PeerProbe() {
    const int device = bootstrap_.rank() % cuda_device_count();
    use_cuda_device(device);
    peers_ = gather_peer_table(bootstrap_);
  }

  void SetUp() override {
    if (ranks() == 1) {
      GTEST_SKIP() << "one rank has no peers";
    }
  }

  int ranks() const { return bootstrap_.world_size(); }

  template <class Lie, class... Args>
  PeerVerdict through(Args... args) {
    Lie mapping(bootstrap_, peers_, args...);
    PeerVerdict verdict = probe_mapping(bootstrap_, peers_, mapping);
    expect_same_everywhere(verdict);
    bootstrap_.barrier();
    return verdict;
  }

  void expect_same_everywhere(const PeerVerdict& verdict) {
    const std::string mine = verdict.reason + "\n" + pairs_text(verdict);
    EXPECT_THAT(bootstrap_.all_gather(mine), Each(mine));
  }

  void expect_all_fail(const PeerVerdict& verdict, ProbeStage stage, PeerFault fault) const {
    EXPECT_FALSE(verdict.usable);
    for (int accessor = 0; accessor < ranks(); ++accessor) {
      for (int owner = 0; owner < ranks(); ++owner) {
        if (accessor != owner) {
          EXPECT_EQ(verdict.pair(accessor, owner).failed, stage) << verdict.reason;
          EXPECT_EQ(verdict.pair(accessor, owner).finding.fault, fault) << verdict.reason;
        }
      }
    }
  }

  Bootstrap& bootstrap_ = test_bootstrap();
  PeerTable peers_;
};

TEST_F(PeerProbe, ProvesTheMappingThatCollectivesUse) {
  const PeerVerdict verdict = probe_peers(bootstrap_, peers_);
  expect_same_everywhere(verdict);
  for (int accessor = 0; accessor < ranks(); ++accessor) {
    for (int owner = 0; owner < ranks(); ++owner) {
      const PeerPair& pair = verdict.pair(accessor, owner);
      if (accessor != owner) {
        EXPECT_TRUE(pair.proven()) << verdict.reason;
        EXPECT_THAT(pair.kernel, Each(testing::Gt(0)));
        EXPECT_THAT(pair.copies, Each(testing::Gt(0)));
        EXPECT_GT(pair.latency_us, 0);
      }
    }
  }
  EXPECT_EQ(verdict.staging.size(), static_cast<size_t>(ranks()));
}

TEST_F(PeerProbe, AMappingThatFailsIsAVerdict) {
  WithoutHandle bootstrap(bootstrap_);
  const PeerVerdict verdict = probe_peers(bootstrap, peers_);
  expect_same_everywhere(verdict);
  expect_all_fail(verdict, ProbeStage::kMapping, PeerFault::kNone);
  EXPECT_THAT(verdict.reason,
              AllOf(HasSubstr("cannot map the GPU memory of rank 0"), HasSubstr("stage 2")));
}

TEST_F(PeerProbe, RanksOfDifferentHostsMapNothing) {
  PeerTable peers = peers_;
  peers[1].host_id = "elsewhere";
  const PeerVerdict verdict = probe_peers(bootstrap_, peers);
  expect_same_everywhere(verdict);
  EXPECT_FALSE(verdict.usable);
  EXPECT_EQ(verdict.pair(0, 1).failed, ProbeStage::kIdentity);
  EXPECT_EQ(verdict.pair(1, 0).failed, ProbeStage::kIdentity);
  EXPECT_THAT(verdict.reason, HasSubstr("ranks 0 and 1 are on different hosts (stage 1"));
}

TEST_F(PeerProbe, CatchesAMirror) {
  const PeerVerdict verdict = through<Mirror>();
  expect_all_fail(verdict, ProbeStage::kStores, PeerFault::kNothing);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("rank 0's stores do not reach rank 1's memory"),
                                    HasSubstr("stage 3")));
}

TEST_F(PeerProbe, CatchesAMirrorOfOneDirection) {
  const int liar = 1;
  const PeerVerdict verdict = through<Mirror>(0, liar);
  EXPECT_FALSE(verdict.usable);
  EXPECT_EQ(verdict.pair(1, 0).failed, ProbeStage::kStores);
  EXPECT_EQ(verdict.pair(0, 1).finding.fault, PeerFault::kUntried);
  EXPECT_THAT(verdict.reason, HasSubstr("rank 1's stores do not reach rank 0's memory"));
}

TEST_F(PeerProbe, CatchesZeros) {
  expect_all_fail(through<Zeros>(), ProbeStage::kStores, PeerFault::kZeros);
}

TEST_F(PeerProbe, CatchesValuesOfAnEarlierEpoch) {
  if (ranks() != 2) {
    GTEST_SKIP() << "an epoch takes several rounds";
  }
  expect_all_fail(through<Stale>(), ProbeStage::kSecondEpoch, PeerFault::kStale);
}

TEST_F(PeerProbe, LeavesASlowLink) {
  const PeerVerdict verdict = through<Slow>();
  expect_all_fail(verdict, ProbeStage::kSpeed, PeerFault::kNone);
  EXPECT_TRUE(verdict.pair(0, 1).proven());
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("GB/s, through the host"), HasSubstr("stage 9")));
}

TEST_F(PeerProbe, EveryStageCatchesWhatTheOnesBeforeItLetPass) {
  if (ranks() != 2) {
    GTEST_SKIP() << "the uses of a mapping are counted for one partner";
  }
  // By the first use that is mirrored: a store, a store, a load, a copy there, one from there, a
  // ping-pong of one block and of several, and twice a copy and its mark.
  const std::vector<ProbeStage> stages{
      ProbeStage::kStores,     ProbeStage::kSecondEpoch, ProbeStage::kLoads,
      ProbeStage::kCopies,     ProbeStage::kCopies,      ProbeStage::kLive,
      ProbeStage::kLive,       ProbeStage::kLiveCopies,  ProbeStage::kLiveCopies,
      ProbeStage::kLiveCopies, ProbeStage::kLiveCopies,  ProbeStage::kNone};
  for (size_t use = 0; use < stages.size(); ++use) {
    const PeerVerdict verdict = through<Mirror>(static_cast<int>(use));
    EXPECT_EQ(verdict.pair(0, 1).failed, stages[use]) << "use " << use << ": " << verdict.reason;
  }
}

TEST_F(PeerProbe, CatchesMarksThatOvertakeTheirCopies) {
  if (ranks() != 2) {
    GTEST_SKIP() << "the uses of a mapping are counted for one partner";
  }
  const int first = 7;
  const int second = 9;
  expect_all_fail(through<Overtaken>(first), ProbeStage::kLiveCopies, PeerFault::kNothing);
  expect_all_fail(through<Overtaken>(second), ProbeStage::kLiveCopies, PeerFault::kStale);
  for (const int liar : {0, 1}) {
    const PeerVerdict verdict = through<Overtaken>(second, liar);
    EXPECT_EQ(verdict.pair(liar, 1 - liar).finding.fault, PeerFault::kStale) << verdict.reason;
    EXPECT_EQ(verdict.pair(1 - liar, liar).failed, ProbeStage::kNone) << verdict.reason;
    EXPECT_THAT(verdict.reason, AllOf(StartsWith(fmt::format("rank {}'s copies do not", liar)),
                                      HasSubstr("stage 8")));
  }
}

TEST_F(PeerProbe, NamesALostMark) {
  if (ranks() != 2) {
    GTEST_SKIP() << "the uses of a mapping are counted for one partner";
  }
  const int mark = 8;
  const PeerVerdict verdict = through<Mirror>(mark, 0);
  EXPECT_EQ(verdict.pair(0, 1).failed, ProbeStage::kLiveCopies) << verdict.reason;
  EXPECT_EQ(verdict.pair(0, 1).finding.fault, PeerFault::kLate) << verdict.reason;
  EXPECT_EQ(verdict.pair(1, 0).failed, ProbeStage::kNone) << verdict.reason;
}

TEST_F(PeerProbe, NamesWhoDoesNotAnswer) {
  if (ranks() != 2) {
    GTEST_SKIP() << "the uses of a mapping are counted for one partner";
  }
  const int live = 5;
  for (const int liar : {0, 1}) {
    const PeerVerdict verdict = through<Mirror>(live, liar);
    EXPECT_EQ(verdict.pair(liar, 1 - liar).failed, ProbeStage::kLive) << verdict.reason;
    EXPECT_EQ(verdict.pair(liar, 1 - liar).finding.fault, PeerFault::kLate) << verdict.reason;
    EXPECT_EQ(verdict.pair(1 - liar, liar).finding.fault, PeerFault::kUntried) << verdict.reason;
    EXPECT_THAT(verdict.reason, StartsWith(fmt::format("rank {}'s messages do not reach", liar)));
  }
}

}  // namespace
}  // namespace lockstep
