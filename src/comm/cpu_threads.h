#pragma once

#include <string>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/peer_table.h"

namespace lockstep {

/// The CPUs that a rank may run on.
struct CpuSet {
  std::string host_id;
  std::string cpus;  ///< one character per CPU, '1' where it may run

  friend bool operator==(const CpuSet&, const CpuSet&) = default;
};

/// How many threads a rank should compute with: its CPUs, divided among the ranks of its host that
/// were given the same ones (mpirun binds each rank to CPUs of its own, or none of them), at least
/// one.
int threads_of(const std::vector<CpuSet>& ranks, int rank);

/// `threads_of` this rank, from every rank's affinity mask. Collective.
int default_threads(Bootstrap& bootstrap, const PeerTable& peers);

}  // namespace lockstep
