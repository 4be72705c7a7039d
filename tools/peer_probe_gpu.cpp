#include "peer_probe_gpu.h"

#include <fmt/core.h>

#include <cstdio>

#include "comm/cuda/peer_probe.h"
#include "comm/cuda/rank_gpu.h"
#include "comm/gpu_transport_select.h"
#include "comm/transport_select.h"
#include "core/base/clock.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "trainer/cuda_device_facts.h"
#include "trainer/reporter.h"

namespace lockstep {
namespace {

/// What a run of these ranks would take, and why.
struct Choice {
  bool peer = false;
  std::string transport;
  std::string reason;
};

Choice choice_of(const PeerVerdict& verdict, const PeerTable& peers) {
  if (peers.size() == 1) {
    return {.transport = "none", .reason = verdict.reason};
  }
  const GpuPaths paths{.peer_problem = peer_problem(peers, [&] { return verdict; })};
  const GpuTransportKind kind = select_gpu_transport(peers, TransportChoice::kAuto, paths);
  const std::string ring = transport_names(
      select_transports(peers, TransportChoice::kAuto, std::vector<bool>(peers.size(), true)));
  return {kind == GpuTransportKind::kPeer, gpu_transport_name(kind, ring),
          paths.peer_problem.empty() ? verdict.reason : paths.peer_problem};
}

int code_of(const PeerVerdict& verdict, const Choice& choice) {
  if (choice.peer || verdict.ranks == 1) {
    return static_cast<int>(ExitCode::kDone);
  }
  bool claimed = !verdict.usable;  // but not used: there are too many ranks
  for (int accessor = 0; accessor < verdict.ranks; ++accessor) {
    for (int owner = 0; owner < verdict.ranks; ++owner) {
      const PeerPair& pair = verdict.pair(accessor, owner);
      claimed = claimed && (accessor == owner || pair.failed != ProbeStage::kIdentity);
    }
  }
  return static_cast<int>(claimed ? ExitCode::kInternal : ExitCode::kUnsupported);
}

/// A JSON string: reasons hold names of hosts and messages of the driver.
std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      json += '\\';
      json += letter;
    } else if (code < ' ') {
      json += fmt::format("\\u{:04x}", code);
    } else {
      json += letter;
    }
  }
  return json + '"';
}

std::string json_of(const PeerVerdict& verdict, const Choice& choice,
                    const std::vector<std::string>& gpus, double seconds) {
  std::string text = fmt::format(
      "{{\n  \"program\": \"peer_probe\",\n  \"transport\": {},\n  \"usable\": {},\n"
      "  \"reason\": {},\n  \"seconds\": {:.3f},\n  \"ranks\": [",
      quoted(choice.transport), verdict.usable, quoted(choice.reason), seconds);
  const char* separator = "\n";
  for (size_t rank = 0; rank < gpus.size(); ++rank) {
    text += fmt::format("{}    {{{}", separator, gpus[rank]);
    if (!verdict.staging.empty()) {
      text += fmt::format(", \"staging_gbs\": [{:.2f}, {:.2f}]", verdict.staging[rank][0],
                          verdict.staging[rank][1]);
    }
    text += "}";
    separator = ",\n";
  }
  text += "\n  ],\n  \"pairs\": [";
  separator = "\n";
  for (int accessor = 0; accessor < verdict.ranks; ++accessor) {
    for (int owner = 0; owner < verdict.ranks; ++owner) {
      if (accessor == owner) {
        continue;
      }
      const PeerPair& pair = verdict.pair(accessor, owner);
      text += fmt::format(
          "{}    {{\"accessor\": {}, \"owner\": {}, \"claim\": {}, \"proven\": {}, "
          "\"failed_stage\": {}, \"kernel_gbs\": [{:.2f}, {:.2f}], "
          "\"copies_gbs\": [{:.2f}, {:.2f}], \"latency_us\": {:.3f}}}",
          separator, accessor, owner, quoted(std::string(claim_name(pair.claim))), pair.proven(),
          static_cast<int>(pair.failed), pair.kernel[0], pair.kernel[1], pair.copies[0],
          pair.copies[1], pair.latency_us);
      separator = ",\n";
    }
  }
  return text + "\n  ]\n}\n";
}

void print_verdict(const PeerVerdict& verdict, const Choice& choice, double seconds) {
  std::string text = pairs_text(verdict);
  for (size_t rank = 0; rank < verdict.staging.size(); ++rank) {
    text += fmt::format(
        "rank {} and page-locked memory, both ways at once: {:.1f} GB/s each at 64K, {:.1f} at "
        "16M\n",
        rank, verdict.staging[rank][0], verdict.staging[rank][1]);
  }
  text += fmt::format("transport: {}: {}\nprobed in {:.0f} ms\n", choice.transport, choice.reason,
                      1e3 * seconds);
  fmt::print("{}", text);
  std::fflush(stdout);
}

}  // namespace

int probe_gpus(const Group& group, const PeerProbeOptions& options) {
  use_rank_gpu(group.bootstrap, group.peers, options.share_gpu);
  const CudaStream stream;  // the GPU is set up before the clock runs, as in a run that trains
  group.bootstrap.barrier();
  const Clock::time_point start = Clock::now();
  const PeerVerdict verdict = probe_peers(group.bootstrap, group.peers);
  const double seconds = seconds_since(start);

  const Choice choice = choice_of(verdict, group.peers);
  const DevicePlace place = place_of(stream);
  print_ranks(group, place, choice.transport);
  const std::vector<std::string> gpus = group.bootstrap.all_gather(
      fmt::format(R"("rank": {}, "host": {}, "gpu": {}, "pci_id": {}, "numa_node": {})",
                  group.rank(), quoted(group.self().host), quoted(place.device),
                  quoted(place.pci_id), place.numa_node == "-" ? "null" : place.numa_node));
  if (group.is_root()) {
    print_verdict(verdict, choice, seconds);
    if (!options.json.empty()) {
      replace_file(options.json, json_of(verdict, choice, gpus, seconds));
    }
  }
  return code_of(verdict, choice);
}

}  // namespace lockstep
