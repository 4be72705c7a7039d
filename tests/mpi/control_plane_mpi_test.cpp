#include <gtest/gtest.h>
#include <unistd.h>

#include "comm/agreement.h"
#include "comm/connection.h"
#include "comm/control_plane.h"
#include "comm/run_under.h"
#include "core/base/error.h"
#include "support/mpi_environment.h"

namespace lockstep {
namespace {

TEST(PeerTableMpi, ProcessesOfOneHostProveIt) {
  Bootstrap& bootstrap = test_bootstrap();
  const PeerTable peers = gather_peer_table(bootstrap);
  ASSERT_EQ(peers.size(), static_cast<size_t>(bootstrap.world_size()));
  for (const PeerInfo& peer : peers) {
    EXPECT_EQ(peer.local_rank, peer.rank);
    EXPECT_EQ(peer.local_size, bootstrap.world_size());
    EXPECT_EQ(peer.host_id, peers[0].host_id);
  }
  EXPECT_EQ(peers[static_cast<size_t>(bootstrap.rank())].pid, ::getpid());
}

TEST(AgreementMpi, OneRankThatDiffersIsNamedEverywhere) {
  Bootstrap& bootstrap = test_bootstrap();
  const int odd = bootstrap.world_size() - 1;
  try {
    check_agreement(bootstrap, {{"seed", bootstrap.rank() == odd ? "2" : "1"}});
    FAIL() << "the seeds differ";
  } catch (const RanksDisagreeError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(fmt::format("rank {} has '2'", odd)), std::string::npos) << message;
  }
}

TEST(ControlPlaneMpi, ManyRunsInOrder) {
  Bootstrap& bootstrap = test_bootstrap();
  const PeerTable peers = gather_peer_table(bootstrap);
  for (int run = 0; run < 20; ++run) {
    ControlPlane control(bootstrap, peers, {});
    control.set_step(run);
    control.throw_if_aborted();
    control.finish();
    EXPECT_FALSE(control.aborted());
  }
}

TEST(ControlPlaneMpi, EveryRankLeavesWithTheSameCause) {
  Bootstrap& bootstrap = test_bootstrap();
  const PeerTable peers = gather_peer_table(bootstrap);
  std::string cause;
  {
    ControlPlane control(bootstrap, peers, {});
    try {
      run_under(control, [&] { throw IoError("rank {} fails", bootstrap.rank()); });
    } catch (const AbortedError& error) {
      cause = error.what();
      EXPECT_EQ(error.code(), ExitCode::kIo);
    }
  }
  EXPECT_NE(cause.find(" fails"), std::string::npos);
  for (const std::string& theirs : bootstrap.all_gather(cause)) {
    EXPECT_EQ(theirs, cause);
  }
}

}  // namespace
}  // namespace lockstep
