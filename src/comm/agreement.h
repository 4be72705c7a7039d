#pragma once

#include <map>
#include <string>

#include "comm/bootstrap.h"

namespace lockstep {

/// Compares facts that must be equal on all ranks before a run may start: configuration, seed,
/// build, dataset fingerprint, instruction set. Collective. When they differ, throws
/// RanksDisagreeError on every rank, with the first key (in order of the map) that differs, its
/// values, and the ranks that hold each.
void check_agreement(Bootstrap& bootstrap, const std::map<std::string, std::string>& facts);

}  // namespace lockstep
