#pragma once

#include <string>

namespace lockstep {

/// The name of this host, to print; "unknown-host" when the system does not tell it.
std::string host_name();

}  // namespace lockstep
