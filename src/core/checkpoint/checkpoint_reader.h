#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/training_state.h"

namespace lockstep {

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
