#include "nccl_tests_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/base/build_id.h"

namespace lockstep {
namespace {

// A number in `width` characters: fewer decimals the more digits stand before the point.
std::string fixed_width(double value, int width) {
  int digits = 0;
  for (double power = 1; value >= power; power *= 10) {
    ++digits;
  }
  if (digits < width - 2) {
    return fmt::format("{:{}.2f}", value, width);
  }
  if (digits < width - 1) {
    return fmt::format("{:{}.1f}", value, width);
  }
  if (digits < width + 1) {
    return fmt::format("{:{}.0f}", value, width);
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::string cells(const TableOptions& options, int64_t bytes, int world_size,
                  const Timing& timing) {
  std::string text = fmt::format("  {:>7}  {:>6}  {:>6}", fixed_width(timing.time, 7),
                                 fixed_width(algorithm_bandwidth(bytes, timing.time), 6),
                                 fixed_width(bus_bandwidth(bytes, timing.time, world_size), 6));
  text += options.check ? fmt::format("  {:6g}", static_cast<double>(timing.wrong)) : "    N/A";
  if (options.per_iteration) {
    text += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", fixed_width(timing.least, 7),
                        fixed_width(timing.most, 7), fixed_width(timing.p99, 7),
                        fixed_width(timing.variation, 7));
  }
  return text;
}

}  // namespace

Timing summarize(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t count = times.size();
  const auto n = static_cast<double>(count);
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / n;
  double variance = 0;
  for (const double time : times) {
    variance += (time - mean) * (time - mean) / n;
  }
  Timing timing;
  timing.time = (times[(count - 1) / 2] + times[count / 2]) / 2;
  timing.least = times.front();
  timing.most = times.back();
  timing.p99 = times[std::min(count - 1, (count * 99 + 99) / 100 - 1)];
  timing.variation = mean > 0 ? std::sqrt(variance) / mean * 100 : 0;
  return timing;
}

double algorithm_bandwidth(int64_t bytes, double time_us) {
  return time_us > 0 ? static_cast<double>(bytes) / time_us * 1e-3 : 0;
}

double bus_bandwidth(int64_t bytes, double time_us, int world_size) {
  return algorithm_bandwidth(bytes, time_us) * 2 * (world_size - 1) / world_size;
}

std::string device_cell(const std::string& pci_id, const std::string& name) {
  std::string place = pci_id.empty() ? "0000:00:00" : pci_id.substr(0, pci_id.find('.'));
  std::transform(place.begin(), place.end(), place.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("[{}] {}", place, name);
}

std::string table_preamble(const TableOptions& options, const PeerTable& peers,
                           const std::vector<std::string>& devices) {
  std::string text = fmt::format("# all_reduce_bench of {}\n", build_id());
  text += "# Collective test starting: all_reduce_bench\n";
  const bool factor = options.step_factor > 1;
  text += fmt::format(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: 1 validation: {} graph: {} unalign: 0\n",
      options.min_bytes, options.max_bytes, factor ? options.step_factor : options.step_bytes,
      factor ? "factor" : "bytes", options.warmup_iterations, options.iterations,
      options.check ? 1 : 0, options.graph_launches);
  if (options.blocking) {
    text += "# Blocking Enabled: wait for completion and barrier after each collective \n";
  }
  text += "#\n# Using devices\n";
  for (const PeerInfo& peer : peers) {
    text +=
        fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} {}\n", peer.rank, 0,
                    peer.pid, peer.host, peer.local_rank, devices[static_cast<size_t>(peer.rank)]);
  }
  return text;
}

std::string table_header(bool per_iteration) {
  const std::string names = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count",
                                        "type", "redop", "root");
  const std::string units =
      fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
  std::string name_cells =
      fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong");
  std::string unit_cells =
      fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  std::string placements = "           out-of-place                       in-place          ";
  if (per_iteration) {
    name_cells += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "i_min", "i_max", "i_p99", "i_cv%");
    unit_cells += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)");
    placements =
        "              out-of-place (+ per-iteration)                                in-place (+ "
        "per-iteration)";
  }
  return fmt::format("#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}\n{}{}{} \n{}{}{} \n", "", "", "",
                     "", "", placements, names, name_cells, name_cells, units, unit_cells,
                     unit_cells);
}

std::string table_row(const TableOptions& options, int64_t bytes, int world_size,
                      const Timing& out_of_place, const Timing& in_place) {
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:6}{}{}\n", bytes,
                     bytes / static_cast<int64_t>(sizeof(float)), "float", "sum", -1,
                     cells(options, bytes, world_size, out_of_place),
                     cells(options, bytes, world_size, in_place));
}

std::string table_footer(int64_t wrong, double average_bus_bandwidth) {
  return fmt::format("# {:<20} : {} {}\n# {:<20} : {:g} \n#\n# Collective test concluded: {}\n",
                     "Out of bounds values", wrong, wrong != 0 ? "FAILED" : "OK",
                     "Avg bus bandwidth", average_bus_bandwidth, "all_reduce_bench");
}

}  // namespace lockstep
