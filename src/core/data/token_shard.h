#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/base/file.h"

namespace lockstep {

/// How a shard's bytes are laid out; docs/formats.md describes each.
enum class ShardFormat : uint8_t {
  kHeaderless,  ///< nanoGPT's: uint16
  kUint16,      ///< llm.c's for GPT-2: 256 x int32 header, magic 20240520
  kUint32,      ///< llm.c's for Llama 3: the same header, magic 20240801
};

/// A memory-mapped file of tokens, its format told by its first bytes. The ids are not copied: a
/// shard may be larger than memory. Const members may be called from several threads.
class TokenShard {
 public:
  /// Throws UsageError or CorruptError naming the file and what is wrong: odd size, another kind of
  /// file, unknown version, a count that does not match the size; IoError when it cannot be read.
  explicit TokenShard(const std::filesystem::path& path);

  int64_t size() const { return size_; }  ///< tokens
  ShardFormat format() const { return format_; }
  const std::filesystem::path& path() const { return path_; }

  /// Tokens [begin, begin + count) as int32. Throws CorruptError naming file and position for an id
  /// >= vocabulary, or when the file has become shorter since it was opened.
  void read(int64_t begin, int64_t count, int64_t vocabulary, int32_t* out) const;

  /// The largest id, from a scan of the whole file at the speed of memory; -1 without tokens.
  int64_t largest_id() const;
  /// Position of the first id >= vocabulary.
  std::optional<int64_t> first_id_outside(int64_t vocabulary) const;

  /// The digest of the file's bytes (of a sample of them when it is large: docs/formats.md): ranks
  /// compare it, checkpoints record it.
  std::string fingerprint() const;

 private:
  void check_length() const;

  std::filesystem::path path_;
  MappedFile file_;
  std::span<const std::byte> tokens_;  // the part of file_ after the header
  int64_t size_ = 0;
  ShardFormat format_ = ShardFormat::kHeaderless;
};

}  // namespace lockstep
