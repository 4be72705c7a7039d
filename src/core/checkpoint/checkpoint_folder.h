#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// step_00001000, the folder of a checkpoint.
std::string step_folder_name(int64_t step);
/// The step, when `name` is such a name.
std::optional<int64_t> parse_step_folder_name(std::string_view name);

/// A checkpoint folder of an output folder whose manifest could be read.
struct ListedCheckpoint {
  std::filesystem::path path;
  uint64_t sequence = 0;
};

/// The checkpoints of an output folder, last saved first. Adds a line to `problems` for each folder
/// that is named like one but is damaged. Throws IoError: without one manifest, the order is not
/// known.
std::vector<ListedCheckpoint> list_checkpoints(const std::filesystem::path& out_dir,
                                               std::vector<std::string>* problems);

/// The last saved checkpoint that is whole: reads and checks all of it. Damaged ones are passed
/// over with a log line; when there are checkpoints and none is whole, throws CorruptError. Nothing
/// when there are none. Throws IoError.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& out_dir);

// Folders with other names than checkpoints have, which a crash may leave behind:
//   .saving_STEPFOLDER_PID_RANDOM    being written, or replaced and being removed
//   .replaced_STEPFOLDER_PID_RANDOM  put aside until the one that replaces it has its place
//   .removing_STEPFOLDER_PID_RANDOM  being removed
enum class TransientKind : uint8_t { kSaving, kReplaced, kRemoving };
std::filesystem::path transient_folder(const std::filesystem::path& out_dir, TransientKind kind,
                                       std::string_view step_folder);

/// Removes such folders of earlier processes; a replaced checkpoint whose replacement did not
/// arrive gets its name back. Touches nothing else, follows no symbolic link. What cannot be
/// removed is logged.
void clean_transient_folders(const std::filesystem::path& out_dir);

/// Removes one such folder; logs what cannot be removed.
void remove_transient_folder(const std::filesystem::path& folder);

/// Takes a checkpoint away: under another name first, so that a crash leaves no part of it under
/// its own. Logs what cannot be removed.
void remove_checkpoint(const std::filesystem::path& folder);

/// `count` bytes from the kernel's random generator. Throws IoError.
std::string random_bytes(size_t count);

}  // namespace lockstep
