#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/file.h"

namespace lockstep {

/// OUT_DIR/metrics.jsonl: one line of JSON per step. Losing a metric is no reason to end a run: a
/// write that fails is logged once and the run goes on. When the file has been deleted, a new one
/// is begun; another that was put in its place is another run's, and left alone.
class MetricsFile {
 public:
  /// A run that continues after `first_step` steps keeps the lines up to there and drops those
  /// behind, which its steps will write again; a new run (0) starts an empty file.
  MetricsFile(std::filesystem::path path, int64_t first_step);

  void append(const std::string& line);

 private:
  /// Makes sure that lines go to the file of this path, or throws IoError.
  void follow_path();
  /// Whole or, as far as the system lets it, not at all; throws IoError.
  void write_line(const std::string& line);

  std::filesystem::path path_;
  UniqueFd file_;
  bool torn_ = false;  ///< the last write may have left a part of a line, and that stayed
  bool failed_ = false;
};

}  // namespace lockstep
