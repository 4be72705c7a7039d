#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/base/file.h"
#include "core/checkpoint/training_state.h"

namespace lockstep {

/// The checkpoints of one output folder: OUT_DIR/step_00001000/ and a file `latest` that names the
/// newest. A save never harms an older checkpoint: everything is written and flushed under a
/// temporary name, renamed into place last; `latest` is replaced after that; old ones are removed
/// only then, so the disk holds `keep` + 1 for a moment. One process at a time owns the store of a
/// folder. docs/formats.md describes the bytes.
class CheckpointStore {
 public:
  /// Creates the folder when missing and proves that it can be written. The `keep` last saved
  /// checkpoints stay (0 = all). Removes what an interrupted save left behind. Throws IoError with
  /// the reason, or UsageError when another process holds the folder.
  CheckpointStore(std::filesystem::path out_dir, int64_t keep);

  /// Writes a checkpoint; returns its folder. Throws IoError with the bytes needed and free when
  /// the disk is full, or with the reason when the folder is gone or was made anew by another run;
  /// whatever it throws, older checkpoints are intact and no half-written one is left under a final
  /// name.
  std::filesystem::path save(const TrainingState& state, const std::vector<NamedTensor>& tensors);

  /// The last saved checkpoint that is whole: from the folders themselves, not from `latest`, and
  /// whatever their steps are. Reads all of it; damaged ones are passed over with a log line. When
  /// there are checkpoints but none is whole, throws CorruptError rather than let a run start anew.
  std::optional<std::filesystem::path> newest() const;

 private:
  /// Holds the folder that is at out_dir_ now, which may be another one than was held: deleted and
  /// made again. False when another process holds it.
  [[nodiscard]] bool hold_folder();
  void remove_old(const std::filesystem::path& just_saved) const;

  std::filesystem::path out_dir_;
  int64_t keep_;
  uint64_t sequence_ = 0;
  UniqueFd lock_;
};

}  // namespace lockstep
