#pragma once

#include <functional>

#include "comm/control_plane.h"

namespace lockstep {

/// Runs the part of a program in which ranks depend on each other, up to and with finish(). Any
/// exception that leaves `body` is reported to the group and leaves this function as AbortedError
/// with the group's first cause; with one rank it passes unchanged.
void run_under(ControlPlane& control, const std::function<void()>& body);

}  // namespace lockstep
