#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/training_state.h"

namespace lockstep {

/// The checkpoints of one output folder: OUT_DIR/step_00001000/ and a file `latest` that names the
/// newest. A save never harms an older checkpoint: everything is written and flushed under a
/// temporary name, renamed into place last; `latest` is replaced after that; old ones are removed
/// only then. docs/formats.md describes the bytes.
class CheckpointStore {
 public:
  /// Creates the folder when missing and proves that it can be written. `keep` newest checkpoints
  /// stay (0 = all). Removes what an interrupted save left behind. Throws IoError with the reason.
  CheckpointStore(std::filesystem::path out_dir, int64_t keep);

  /// Writes a checkpoint; returns its folder. Throws IoError with the bytes needed and free when
  /// the disk is full; whatever it throws, older checkpoints are intact and no half-written one is
  /// left under a final name.
  std::filesystem::path save(const TrainingState& state, const std::vector<NamedTensor>& tensors);

  /// The newest complete checkpoint's folder: from the folders themselves, not from `latest`.
  /// Damaged or unfinished ones are passed over with a log line.
  std::optional<std::filesystem::path> newest() const;

 private:
  std::filesystem::path out_dir_;
  int64_t keep_;
};

/// Reading one checkpoint folder.
class CheckpointReader {
 public:
  /// `path` is a step folder, or an output folder (its newest checkpoint is taken). Reads the
  /// manifest; throws IoError, or CorruptError that names file and offset.
  explicit CheckpointReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const TrainingState& state() const { return state_; }

  struct TensorInfo {
    std::string name;
    std::vector<int64_t> shape;
    int64_t elements = 0;
  };
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  /// Calls `into(tensor)` for each tensor in file order, to get the memory of tensor.elements
  /// floats that it is read into (empty = skip), and checks every chunk's CRC. Throws CorruptError
  /// naming tensor, file and offset.
  void read(const std::function<std::span<float>(const TensorInfo&)>& into) const;

  /// Reads and checks everything without keeping it.
  void verify() const;

 private:
  std::filesystem::path path_;
  TrainingState state_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace lockstep
