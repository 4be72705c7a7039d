#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "nccl_tests_table.h"

namespace lockstep {

enum class Baseline : uint8_t { kNone, kMpi, kNccl };

struct AllReduceOptions {
  TableOptions table;
  bool cuda = false;
  TransportChoice transport = TransportChoice::kAuto;
  std::string algorithm = "auto";  ///< of GPUs over peer access
  bool beside = false;             ///< and by their plan for sums beside other work
  Baseline baseline = Baseline::kNone;
  double min_bus_bandwidth = 0;  ///< GB/s, of the average
  std::string json;
  std::string bind_address;

  /// Of a window for the largest size.
  CommunicatorOptions communicator() const;
};

constexpr int64_t elements_of(int64_t bytes) {
  return bytes / static_cast<int64_t>(sizeof(float));
}

/// False when help was printed. Throws UsageError.
bool parse_all_reduce_options(int argc, char** argv, AllReduceOptions* options);

}  // namespace lockstep
