#include "comm/cpu_threads.h"

#include <sched.h>

#include <algorithm>

namespace lockstep {
namespace {

std::string allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on hosts with more than 1024 CPUs only; then the mask is empty and one thread is used.
  ::sched_getaffinity(0, sizeof(set), &set);
  std::string cpus(CPU_SETSIZE, '0');
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (CPU_ISSET(i, &set)) {
      cpus[i] = '1';
    }
  }
  return cpus;
}

}  // namespace

int threads_of(const std::vector<CpuSet>& ranks, int rank) {
  const CpuSet& mine = ranks[static_cast<size_t>(rank)];
  const auto sharing = std::count(ranks.begin(), ranks.end(), mine);
  const auto cpus = std::count(mine.cpus.begin(), mine.cpus.end(), '1');
  return static_cast<int>(std::max<std::ptrdiff_t>(1, cpus / sharing));
}

int default_threads(Bootstrap& bootstrap, const PeerTable& peers) {
  const std::vector<std::string> masks = bootstrap.all_gather(allowed_cpus());
  std::vector<CpuSet> ranks;
  for (const PeerInfo& peer : peers) {
    ranks.push_back({peer.host_id, masks[static_cast<size_t>(peer.rank)]});
  }
  return threads_of(ranks, bootstrap.rank());
}

}  // namespace lockstep
