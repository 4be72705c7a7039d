#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/training_state.h"

namespace lockstep {

inline constexpr uint32_t kCheckpointFormatVersion = 1;
inline constexpr std::string_view kManifestFile = "manifest.rec";
inline constexpr std::string_view kTensorFile = "tensors.rec";
inline constexpr size_t kCheckpointIdBytes = 16;

// What a reader believes at most; a writer keeps to the same.
inline constexpr size_t kMaxTensors = 1 << 16;
inline constexpr size_t kMaxTensorName = 1024;
inline constexpr size_t kMaxTensorRank = 8;
inline constexpr int64_t kMaxChunkElements = int64_t{16} << 20;  // 64 MiB

/// Elements of a tensor, or nothing when a dimension is negative or the product exceeds `limit`.
std::optional<int64_t> element_count(std::span<const int64_t> shape, int64_t limit);

/// What the manifest says of one tensor.
struct ManifestTensor {
  std::string name;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  int64_t offset = 0;                  ///< of its first record in tensors.rec
  std::vector<uint32_t> chunk_crc32c;  ///< of each chunk's data
};

/// What a checkpoint consists of, written last: a folder without it is not a checkpoint.
struct Manifest {
  std::string checkpoint_id;  ///< kCheckpointIdBytes random bytes
  uint64_t sequence = 0;      ///< orders the saves of a folder without asking a clock
  TrainingState state;
  int64_t chunk_elements = 0;
  std::vector<ManifestTensor> tensors;
  int64_t tensor_file_bytes = 0;

  int64_t chunk_count(const ManifestTensor& tensor) const {
    return (tensor.elements + chunk_elements - 1) / chunk_elements;
  }
};

/// The path of one of a checkpoint's two files. Throws CorruptError when it is missing: the folder
/// is no checkpoint, or no longer.
std::filesystem::path existing_file(const std::filesystem::path& folder, std::string_view name);

/// Creates `folder`/manifest.rec and waits until it is on the disk. Throws IoError.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

/// Reads `folder`/manifest.rec. Whatever the file holds, the result keeps to the limits above and
/// to a tensor file of tensor_file_bytes bytes. Throws CorruptError or IoError.
Manifest read_manifest(const std::filesystem::path& folder);

// The records of tensors.rec that say where the next record belongs.
std::string encode_tensor_file_header(const Manifest& manifest);
std::string encode_chunk(const Manifest& manifest, size_t tensor_index, int64_t first_element,
                         int64_t elements);
/// Empty when `record` is the one that belongs there, otherwise what is wrong with it.
std::string tensor_file_header_problem(const std::string& record, const Manifest& manifest);
std::string chunk_problem(const std::string& record, const Manifest& manifest, size_t tensor_index,
                          int64_t first_element, int64_t elements);

}  // namespace lockstep
