#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// One option in --help.
struct HelpLine {
  std::string group;   ///< lines are shown under the heading of their group
  std::string option;  ///< "-n, --iters INT [20]"
  std::string help;
};

/// What --help shows: the usage, what the program does, the options by group in the order of the
/// groups' first lines, the footer. Text is broken at 80 columns between words; its own line breaks
/// stay.
std::string help_text(const std::string& usage, const std::string& description,
                      const std::vector<HelpLine>& lines, const std::string& footer);

}  // namespace lockstep
