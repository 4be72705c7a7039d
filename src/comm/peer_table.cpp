#include "comm/peer_table.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "comm/process_fd.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/host_name.h"
#include "wire.pb.h"

namespace lockstep {
namespace {

constexpr size_t kProofBytes = 16;

/// Ranks with different claims cannot share memory; equal claims are only a hint, since virtual
/// machines cloned from one snapshot have the same boot id.
std::string host_claim() {
  std::string claim;
  try {
    claim = read_file("/proc/sys/kernel/random/boot_id");
    claim.erase(claim.find_last_not_of('\n') + 1);
  } catch (const IoError&) {
    claim = host_name();
  }
  for (const char* name : {"ipc", "net", "pid", "user"}) {
    std::error_code failed;
    claim += ' ';
    claim += std::filesystem::read_symlink(std::string("/proc/self/ns/") + name, failed).string();
  }
  return claim;
}

/// Memory of this process, without a name in any file system, that holds `proof`.
UniqueFd keep_proof(const std::string& proof) {
  UniqueFd fd(::memfd_create("lockstep-host-proof", MFD_CLOEXEC));
  if (!fd) {
    throw IoError("cannot create shared memory: memfd_create: {}", std::strerror(errno));
  }
  write_all(fd.get(), bytes_of(proof), "shared memory");
  return fd;
}

/// What `peer` keeps, as far as this process can see it; empty when it cannot.
std::string read_proof(const wire::Peer& peer) {
  const UniqueFd fd = open_fd_of(peer.pid(), peer.proof_fd(), O_RDONLY);
  std::string proof(kProofBytes, '\0');
  const ssize_t got = fd ? ::pread(fd.get(), proof.data(), proof.size(), 0) : -1;
  proof.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return proof;
}

std::vector<wire::Peer> gather_peers(Bootstrap& bootstrap, const wire::Peer& mine) {
  std::vector<wire::Peer> peers;
  for (const std::string& bytes : bootstrap.all_gather(mine.SerializeAsString())) {
    if (!peers.emplace_back().ParseFromString(bytes)) {
      throw InternalError("rank {} sent a description of itself that cannot be read",
                          peers.size() - 1);
    }
  }
  return peers;
}

/// The lowest rank with the same claim as `rank`.
size_t leader_of(const std::vector<wire::Peer>& peers, size_t rank) {
  size_t leader = 0;
  while (peers[leader].host_claim() != peers[rank].host_claim()) {
    ++leader;
  }
  return leader;
}

void number_within_hosts(PeerTable& table) {
  std::map<std::string, int> sizes;
  for (PeerInfo& peer : table) {
    peer.local_rank = sizes[peer.host_id]++;
  }
  for (PeerInfo& peer : table) {
    peer.local_size = sizes[peer.host_id];
  }
}

}  // namespace

std::string rank_name(const PeerInfo& rank) {
  return fmt::format("rank {} (host {}, pid {})", rank.rank, rank.host, rank.pid);
}

bool on_one_host(const PeerTable& peers) {
  return std::all_of(peers.begin(), peers.end(),
                     [&](const PeerInfo& peer) { return peer.host_id == peers[0].host_id; });
}

const PeerInfo& first_of_host(const PeerTable& peers, const std::string& host_id) {
  const auto first = std::find_if(peers.begin(), peers.end(),
                                  [&](const PeerInfo& peer) { return peer.host_id == host_id; });
  LOCKSTEP_CHECK(first != peers.end(), "no rank is on host {}", host_id);
  return *first;
}

PeerTable gather_peer_table(Bootstrap& bootstrap) {
  LOCKSTEP_CHECK(sodium_init() >= 0, "libsodium cannot start");
  std::string proof(kProofBytes, '\0');
  randombytes_buf(proof.data(), proof.size());
  const UniqueFd kept = keep_proof(proof);

  wire::Peer mine;
  mine.set_host(host_name());
  mine.set_host_claim(host_claim());
  mine.set_pid(::getpid());
  mine.set_proof_fd(kept.get());
  mine.set_proof(proof);
  const std::vector<wire::Peer> peers = gather_peers(bootstrap, mine);

  // A rank is on the host of the first rank with its claim if it reads that rank's memory. Every
  // look comes before the gather, so `kept` outlives them all.
  const auto rank = static_cast<size_t>(bootstrap.rank());
  const std::vector<std::string> seen =
      bootstrap.all_gather(read_proof(peers[leader_of(peers, rank)]));

  PeerTable table;
  for (size_t i = 0; i < peers.size(); ++i) {
    const bool proven = seen[i] == peers[leader_of(peers, i)].proof();
    PeerInfo& info = table.emplace_back();
    info.rank = static_cast<int>(i);
    info.host = peers[i].host();
    info.host_id =
        proven ? peers[i].host_claim() : fmt::format("{} rank {}", peers[i].host_claim(), i);
    info.pid = peers[i].pid();
  }
  number_within_hosts(table);
  return table;
}

}  // namespace lockstep
