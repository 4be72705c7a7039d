#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "all_reduce_options.h"
#include "comm/control_plane.h"
#include "comm/mpi_bootstrap.h"
#include "comm/peer_table.h"
#include "nccl_tests_table.h"

namespace lockstep {

/// One size: all its timings.
struct AllReduceResult {
  int64_t bytes = 0;
  std::string plan;  ///< how our sums were done, where there is more than one way; else empty
  Timing out_of_place;
  Timing in_place;
  Timing baseline;
};

/// The sums of one kind of device, and what they are compared with. All calls are collective.
class AllReduceBench {
 public:
  AllReduceBench() = default;
  virtual ~AllReduceBench() = default;
  AllReduceBench(const AllReduceBench&) = delete;
  AllReduceBench& operator=(const AllReduceBench&) = delete;
  AllReduceBench(AllReduceBench&&) = delete;
  AllReduceBench& operator=(AllReduceBench&&) = delete;

  virtual std::string device() const = 0;
  virtual std::string pci_id() const { return {}; }  ///< of this rank's device; empty: on no bus
  virtual std::string transport() const = 0;
  virtual std::string baseline() const = 0;  ///< its name and version
  /// GB/s of the link that a rank sends over, as copies alone reach; 0: not known.
  virtual double link_bandwidth() const = 0;
  virtual AllReduceResult run(int64_t bytes) = 0;
};

std::unique_ptr<AllReduceBench> make_cpu_all_reduce_bench(MpiBootstrap& bootstrap,
                                                          const PeerTable& peers,
                                                          ControlPlane& control,
                                                          const AllReduceOptions& options);
/// Throws UnsupportedError in a build without CUDA and on a machine without a GPU.
std::unique_ptr<AllReduceBench> make_cuda_all_reduce_bench(MpiBootstrap& bootstrap,
                                                           const PeerTable& peers,
                                                           ControlPlane& control,
                                                           const AllReduceOptions& options);

/// Times of one kind of all-reduce on one rank, one for each iteration, and the wrong elements that
/// it has left here.
struct AllReduceSeries {
  std::vector<double> times_us;
  int64_t wrong = 0;
};

/// Times: mean over the ranks of each iteration. Wrong elements: of all ranks together. Collective.
Timing gather_series(Bootstrap& bootstrap, const AllReduceSeries& series);

}  // namespace lockstep
