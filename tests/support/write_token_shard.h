#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "core/data/token_shard_writer.h"

namespace lockstep {

/// Writes a whole shard.
inline void write_token_shard(const std::filesystem::path& path, std::span<const int32_t> tokens,
                              int64_t vocabulary) {
  TokenShardWriter writer(path, vocabulary);
  writer.append(tokens);
  writer.finish();
}

}  // namespace lockstep
