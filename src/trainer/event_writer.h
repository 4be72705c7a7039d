#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/base/record_file.h"

namespace lockstep {

/// Writes one TensorBoard event file: the curves of a run, or of the part of it since it was
/// resumed. Each scalar is handed to the kernel at once, so that curves are live and a killed run
/// keeps all of them; nothing waits for the disk. Curves are not worth a run: when the disk fails
/// later on, one log line says so, and what could not be written is missing.
class EventWriter {
 public:
  /// Creates `folder` when missing, and in it events.out.tfevents.SECONDS.HOST.PID.NUMBER. `step`
  /// is the first that will be recorded: TensorBoard forgets what earlier files of the folder say
  /// of it and of later ones. Throws IoError.
  EventWriter(const std::filesystem::path& folder, int64_t step);

  /// Adds a point to the curve `tag`, which is valid UTF-8. Never throws IoError.
  void scalar(std::string_view tag, int64_t step, double value);

  const std::filesystem::path& path() const { return writer_.path(); }

 private:
  RecordWriter writer_;
  int64_t whole_bytes_ = 0;  // up to the end of the last record that was written
  bool failed_ = false;
};

}  // namespace lockstep
