#include "comm/listen_address.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/base/error.h"

namespace lockstep {
namespace {

struct InterfaceAddress {
  std::string interface;
  std::string address;
  bool loopback = false;
};

/// The address as text; empty when it is of another family or means something on one link only.
std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address != nullptr && address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
      ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    }
  }
  return text.data();
}

std::vector<InterfaceAddress> host_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    throw IoError("cannot list the network interfaces of this host: {}", std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const std::string address = numeric(entry->ifa_addr);
    if ((entry->ifa_flags & IFF_UP) != 0 && !address.empty()) {
      found.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> listen_addresses(const PeerTable& peers, const std::string& bind_address) {
  const std::vector<InterfaceAddress> all = host_addresses();
  const bool one_host = on_one_host(peers);
  std::vector<std::string> chosen;
  std::vector<std::string> known;
  for (const InterfaceAddress& entry : all) {
    known.push_back(fmt::format("{} ({})", entry.address, entry.interface));
    // Ranks on several hosts never meet on a loopback interface.
    const bool usable = one_host || !entry.loopback;
    const bool wanted = bind_address.empty()
                            ? entry.loopback == one_host
                            : bind_address == entry.address || bind_address == entry.interface;
    if (usable && wanted) {
      chosen.push_back(entry.address);
    }
  }
  if (chosen.empty()) {
    if (bind_address.empty()) {
      throw UsageError(
          "no {} interface of this host is up, so no rank can connect to this one; its "
          "addresses are {}; bring one up (ip link set NAME up)",
          one_host ? "loopback" : "network", fmt::join(known, ", "));
    }
    throw UsageError(
        "--bind-address {}: neither an address nor an interface of this host that the other ranks "
        "can reach; choose one of {}",
        bind_address, fmt::join(known, ", "));
  }
  if (one_host && bind_address.empty()) {
    chosen.resize(1);
  }
  return chosen;
}

}  // namespace lockstep
