#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "core/base/record_file.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/training_state.h"

namespace lockstep {

/// Creates `folder`/tensors.rec and waits until it is on the disk. `manifest` comes with all but
/// its tensors and tensor_file_bytes, which this fills in. Throws IoError.
void write_tensor_file(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                       Manifest* manifest);

/// The size of that file, but for some bytes per chunk that describe it.
int64_t tensor_bytes(std::span<const NamedTensor> tensors);

/// Reads `folder`/tensors.rec as `manifest`, which must outlive the reader, describes it.
class TensorFileReader {
 public:
  /// Refuses a file of another size or of another save. Throws CorruptError or IoError.
  TensorFileReader(const std::filesystem::path& folder, const Manifest& manifest);

  /// Reads one tensor into `out` (its elements) and checks every byte of its records. Throws
  /// CorruptError naming file, offset and tensor, or IoError.
  void read(size_t tensor_index, std::span<float> out);

  /// Reads and checks the whole file; bytes that belong to no tensor are damage too.
  void verify();

 private:
  /// Gives the memory that elements [first, first + count) are read into.
  using ChunkRoom = std::function<std::span<float>(int64_t first, int64_t count)>;

  void read_chunks(size_t tensor_index, const ChunkRoom& room);
  [[noreturn]] void corrupt(int64_t offset, const std::string& what) const;

  const Manifest& manifest_;
  RecordReader records_;
  int64_t first_offset_ = 0;
};

}  // namespace lockstep
