#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/base/file.h"
#include "core/data/token_shard.h"

namespace lockstep {

/// Writes a shard piece by piece in llm.c's format: uint16 when every id of the vocabulary fits,
/// else uint32. Nothing shows under the final name before finish(); without it nothing is left
/// behind. Throws IoError.
class TokenShardWriter {
 public:
  TokenShardWriter(std::filesystem::path path, int64_t vocabulary);
  ~TokenShardWriter();
  TokenShardWriter(const TokenShardWriter&) = delete;
  TokenShardWriter& operator=(const TokenShardWriter&) = delete;
  TokenShardWriter(TokenShardWriter&&) = delete;
  TokenShardWriter& operator=(TokenShardWriter&&) = delete;

  /// 0 <= id < vocabulary, else InternalError.
  void append(std::span<const int32_t> tokens);
  /// Puts the complete file, flushed to the disk, in place.
  void finish();

  ShardFormat format() const { return format_; }
  int64_t size() const { return size_; }  ///< tokens so far

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  UniqueFd fd_;
  int64_t vocabulary_;
  ShardFormat format_;
  int64_t size_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace lockstep
