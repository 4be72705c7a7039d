#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"

namespace lockstep {

/// A memory-mapped file of tokens, in one of the formats of docs/formats.md, told apart by their
/// first bytes: llm.c's (256 x int32 header, magic 20240520, uint16; or 20240801, uint32) or
/// nanoGPT's headerless uint16. The ids are not copied: a shard may be larger than memory.
class TokenShard {
 public:
  /// Throws UsageError or CorruptError naming the file and what is wrong: odd size, wrong magic
  /// version, count that does not match the size.
  explicit TokenShard(const std::filesystem::path& path);

  int64_t size() const { return size_; }  ///< tokens
  int64_t token(int64_t index) const { return wide_ ? word32(index) : word16(index); }
  /// Tokens [begin, begin + count) as int32. Throws CorruptError naming file and position for an id
  /// >= vocabulary.
  void read(int64_t begin, int64_t count, int64_t vocabulary, int32_t* out) const;

  /// The digest of the file's bytes: ranks compare it, checkpoints record it.
  std::string fingerprint() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  int64_t word16(int64_t index) const;
  int64_t word32(int64_t index) const;

  std::filesystem::path path_;
  MappedFile file_;
  const std::byte* tokens_ = nullptr;
  int64_t size_ = 0;
  bool wide_ = false;
};

/// Writes llm.c's format: uint16 when every id fits, else uint32. Throws IoError; leaves no part of
/// a file behind. Returns true when the wide form was needed.
bool write_token_shard(const std::filesystem::path& path, std::span<const int32_t> tokens,
                       int64_t vocabulary);

}  // namespace lockstep
