#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "core/data/token_shard.h"

namespace lockstep {

/// llm.c's header in front of a shard's tokens: 256 x int32, {magic, version, tokens, 0 …}. The
/// count is read and written as 64 bits over words 2 and 3, which for llm.c's own shards (fewer
/// than 2^31 tokens) is the same thing.
struct ShardHeader {
  ShardFormat format = ShardFormat::kUint16;
  int64_t tokens = 0;
};

inline constexpr size_t kShardHeaderBytes = 256 * sizeof(int32_t);

/// The header of a file with these bytes; nothing when it has none. Throws UsageError when it is
/// another of llm.c's files or versions, CorruptError when its size does not fit its count.
std::optional<ShardHeader> read_shard_header(std::span<const std::byte> file,
                                             const std::filesystem::path& path);

/// The header's bytes.
std::vector<std::byte> shard_header_bytes(const ShardHeader& header);

inline int64_t token_bytes(ShardFormat format) {
  return format == ShardFormat::kUint32 ? 4 : 2;
}

}  // namespace lockstep
