#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/peer_table.h"

namespace lockstep {

/// The table of nccl-tests' all_reduce_perf, to the character, so that what reads the one reads the
/// other. What is ours alone goes to lines that begin with '#'.

struct TableOptions {
  int64_t min_bytes = 0;
  int64_t max_bytes = 0;
  int64_t step_bytes = 0;
  int64_t step_factor = 0;  ///< used instead of step_bytes when above 1
  int64_t warmup_iterations = 0;
  int64_t iterations = 0;
  int64_t graph_launches = 0;  ///< 0: no graph
  bool check = true;
  bool blocking = false;
  bool per_iteration = false;
};

/// One kind of all-reduce at one size. Times in microseconds, over the iterations of the mean of
/// the ranks.
struct Timing {
  double time = 0;  ///< median
  double least = 0;
  double most = 0;
  double p99 = 0;
  double variation = 0;  ///< standard deviation as a share of the mean, in percent
  int64_t wrong = 0;     ///< elements, over all ranks
};

Timing summarize(std::vector<double> times);

/// Bandwidths in GB/s (10^9): the array's bytes over the time, and that times 2(n-1)/n, which
/// compares with the speed of a link at any number of ranks.
double algorithm_bandwidth(int64_t bytes, double time_us);
double bus_bandwidth(int64_t bytes, double time_us, int world_size);

/// A rank's device: its place on the bus, as CUDA tells it, without the function, and its name.
/// Empty `pci_id`: it is on none.
std::string device_cell(const std::string& pci_id, const std::string& name);
/// `devices`: the ranks' cells.
std::string table_preamble(const TableOptions& options, const PeerTable& peers,
                           const std::vector<std::string>& devices);
std::string table_header(bool per_iteration);
std::string table_row(const TableOptions& options, int64_t bytes, int world_size,
                      const Timing& out_of_place, const Timing& in_place);
std::string table_footer(int64_t wrong, double average_bus_bandwidth);

}  // namespace lockstep
