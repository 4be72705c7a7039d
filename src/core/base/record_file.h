#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "core/base/file.h"

namespace lockstep {

/// Files of records in TFRecord's framing, which checkpoints and TensorBoard's event files share:
///   u64 length | u32 masked CRC-32C of the length | bytes | u32 masked CRC-32C of the bytes
/// all little-endian. Every byte of such a file is covered by a checksum.
inline constexpr int64_t kRecordFrameBytes = 16;

/// No record of ours is longer than this: a chunk of 64 MiB and room for what describes it.
inline constexpr int64_t kMaxRecordBytes = (int64_t{64} << 20) + (int64_t{1} << 20);

/// Writes a new file. Small records are gathered in a buffer; large ones go to the kernel straight
/// from the caller's memory. Every function throws IoError.
class RecordWriter {
 public:
  /// Creates the file, which must not exist.
  explicit RecordWriter(std::filesystem::path path);

  /// Asks the file system for room up front, so that a full disk is found before the first byte.
  /// File systems that cannot do that are left to fail later.
  void reserve(int64_t bytes);

  /// Appends one record; returns the CRC-32C of its bytes.
  uint32_t append(std::span<const std::byte> record);

  /// Hands what was appended to the kernel. Without it the destructor drops what is buffered.
  void flush();
  /// Flushes, and waits until the data are on the disk.
  void sync();
  /// Takes the file back to its first `bytes` bytes and drops what is buffered.
  void truncate(int64_t bytes);

  int64_t size() const { return written_ + static_cast<int64_t>(buffer_.size()); }
  const std::filesystem::path& path() const { return path_; }

 private:
  void write_large(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  UniqueFd fd_;
  std::string buffer_;
  int64_t written_ = 0;
};

/// Reads a file of records that may be damaged or hostile: a length is believed only after its
/// checksum, and never above the rest of the file or the caller's limit. Throws CorruptError with
/// file and offset, or IoError.
class RecordReader {
 public:
  explicit RecordReader(std::filesystem::path path);

  int64_t size() const { return size_; }      ///< of the file, in bytes
  int64_t offset() const { return offset_; }  ///< of the next record
  bool at_end() const { return offset_ == size_; }
  void seek(int64_t offset) { offset_ = offset; }

  /// The next record, of at most `limit` bytes.
  std::string read(int64_t limit);
  /// The next record into `out`, whose length it must have; returns the CRC-32C of its bytes.
  uint32_t read_into(std::span<std::byte> out);

  const std::filesystem::path& path() const { return path_; }

 private:
  int64_t read_length(int64_t limit);
  void read_exactly(std::span<std::byte> out, int64_t offset) const;
  uint32_t read_body(std::span<std::byte> out);
  [[noreturn]] void corrupt(int64_t offset, const std::string& what) const;

  std::filesystem::path path_;
  UniqueFd fd_;
  int64_t size_ = 0;
  int64_t offset_ = 0;
};

}  // namespace lockstep
