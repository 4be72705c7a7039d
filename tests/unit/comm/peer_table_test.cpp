#include "comm/peer_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/thread_bootstrap.h"
#include "wire.pb.h"

namespace lockstep {
namespace {

/// A rank that tells the others something else than the truth about itself.
class LyingBootstrap final : public Bootstrap {
 public:
  LyingBootstrap(Bootstrap& real, std::function<void(wire::Peer&)> lie)
      : real_(real), lie_(std::move(lie)) {}

  int rank() const override { return real_.rank(); }
  int world_size() const override { return real_.world_size(); }
  void barrier() override { real_.barrier(); }
  std::vector<std::string> all_gather(std::string_view bytes) override {
    wire::Peer peer;
    if (peer.ParseFromString(std::string(bytes)) && peer.pid() != 0) {
      lie_(peer);
      return real_.all_gather(peer.SerializeAsString());
    }
    return real_.all_gather(bytes);
  }

 private:
  Bootstrap& real_;
  std::function<void(wire::Peer&)> lie_;
};

/// The table of a group in which rank r lies by `lies[r]`; the same on every rank.
PeerTable table_of(const std::vector<std::function<void(wire::Peer&)>>& lies) {
  std::vector<PeerTable> tables(lies.size());
  run_ranks(static_cast<int>(lies.size()), [&](Bootstrap& bootstrap) {
    const auto rank = static_cast<size_t>(bootstrap.rank());
    LyingBootstrap lying(bootstrap, lies[rank]);
    tables[rank] = gather_peer_table(lying);
  });
  for (const PeerTable& table : tables) {
    EXPECT_EQ(table.size(), lies.size());
    for (size_t i = 0; i < table.size(); ++i) {
      EXPECT_EQ(table[i].rank, static_cast<int>(i));
      EXPECT_EQ(table[i].host_id, tables[0][i].host_id);
      EXPECT_EQ(table[i].local_rank, tables[0][i].local_rank);
      EXPECT_EQ(table[i].local_size, tables[0][i].local_size);
    }
  }
  return tables[0];
}

void honest(wire::Peer&) {}

TEST(PeerTable, RanksOfOneHost) {
  const PeerTable table = table_of({honest, honest, honest});
  for (const PeerInfo& peer : table) {
    EXPECT_EQ(peer.local_rank, peer.rank);
    EXPECT_EQ(peer.local_size, 3);
    EXPECT_EQ(peer.host_id, table[0].host_id);
    EXPECT_EQ(peer.pid, ::getpid());
    EXPECT_FALSE(peer.host.empty());
  }
}

TEST(PeerTable, RanksOfTwoHostsAlternating) {
  const auto elsewhere = [](wire::Peer& peer) { peer.set_host_claim("elsewhere"); };
  const PeerTable table = table_of({honest, elsewhere, honest, elsewhere, honest});
  EXPECT_NE(table[0].host_id, table[1].host_id);
  EXPECT_EQ(table[1].host_id, table[3].host_id);
  EXPECT_EQ(table[0].local_size, 3);
  EXPECT_EQ(table[3].local_size, 2);
  EXPECT_EQ(table[3].local_rank, 1);
  EXPECT_EQ(table[4].local_rank, 2);
}

TEST(PeerTable, AHostThatOnlyLooksTheSameIsAnother) {
  // A clone of a virtual machine: the same boot id, name and namespaces, other memory.
  const auto clone = [](wire::Peer& peer) { peer.set_proof("of another machine"); };
  const PeerTable table = table_of({clone, honest});
  EXPECT_NE(table[0].host_id, table[1].host_id);
  EXPECT_EQ(table[0].local_size, 1);
  EXPECT_EQ(table[1].local_rank, 0);
}

}  // namespace
}  // namespace lockstep
