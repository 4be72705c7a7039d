#pragma once

#include <string_view>

namespace lockstep {

/// Version, commit and compiler of this build; recorded in checkpoints and compared across ranks at
/// start.
std::string_view build_id();

}  // namespace lockstep
