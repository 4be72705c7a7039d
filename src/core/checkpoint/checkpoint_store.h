#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  /// the disk is full; whatever it throws, older checkpoints are intact and no half-written one is
  /// left under a final name.
  std::filesystem::path save(const TrainingState& state, const std::vector<NamedTensor>& tensors);

  /// The last saved checkpoint that is whole: from the folders themselves, not from `latest`, and
  /// whatever their steps are. Reads all of it; damaged ones are passed over with a log line. When
  /// there are checkpoints but none is whole, throws CorruptError rather than let a run start anew.
  std::optional<std::filesystem::path> newest() const;

 private:
  void remove_old(const std::filesystem::path& just_saved) const;

  std::filesystem::path out_dir_;
  int64_t keep_;
  uint64_t sequence_ = 0;
  UniqueFd lock_;
};

struct Manifest;

/// Reading one checkpoint folder.
class CheckpointReader {
 public:
  /// `path` is a step folder, or an output folder (its newest checkpoint is taken, as by
  /// CheckpointStore::newest). Reads the manifest; throws IoError, or CorruptError that names file
  /// and offset.
  explicit CheckpointReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const TrainingState& state() const;

  struct TensorInfo {
    std::string name;
    std::vector<int64_t> shape;
    int64_t elements = 0;
  };
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  /// Calls `into(tensor)` for each tensor in file order, to get the memory of tensor.elements
  /// floats that it is read into (empty = skip, its bytes are not touched), and checks every
  /// chunk's CRC. Throws CorruptError naming tensor, file and offset.
  void read(const std::function<std::span<float>(const TensorInfo&)>& into) const;

  /// Throws CorruptError that names a tensor unless those whose names begin with `prefix` are
  /// exactly the ones of `elements`, with as many elements. The files decide what is there: ask
  /// before memory is allocated for a model that a manifest claims.
  void check_tensors(std::string_view prefix, const std::map<std::string, int64_t>& elements) const;

  /// Fills each tensor of `memory` by name, and only those, after check_tensors of their sizes.
  /// Throws as read does.
  void load(std::string_view prefix, const std::map<std::string, std::span<float>>& memory) const;

  /// The tensor at a place of tensors(), read and checked alike.
  std::vector<float> read_tensor(size_t index) const;

  /// Reads and checks everything without keeping it.
  void verify() const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const Manifest> manifest_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace lockstep
