#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// One `key = value` of a configuration file.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;  ///< one, or the elements of a list
  bool quoted = true;               ///< all are text between quotes: no number, true or false
  int line = 0;
};

/// Reads the part of TOML 1.0 that options need: `key = value` lines with bare keys, [sections]
/// that only group, comments, text between quotes on one line, numbers, true and false, and lists
/// of those on one line. A byte order mark in front is passed over. Throws UsageError
/// "PATH:LINE: ..." for everything else, also for what is TOML but not of that part.
std::vector<ConfigEntry> read_config_file(const std::string& path);

}  // namespace lockstep
