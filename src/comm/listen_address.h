#pragma once

#include <string>
#include <vector>

#include "comm/peer_table.h"

namespace lockstep {

/// The numeric addresses on which a rank listens, by the rule of ConnectOptions::bind_address;
/// never the wildcard. Throws UsageError, listing the addresses of this host, when `bind_address`
/// is neither one of them nor one of its interfaces.
std::vector<std::string> listen_addresses(const PeerTable& peers, const std::string& bind_address);

}  // namespace lockstep
