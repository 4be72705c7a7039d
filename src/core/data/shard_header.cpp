#include "core/data/shard_header.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr int32_t kMagicUint16 = 20240520;
constexpr int32_t kVersionUint16 = 1;
constexpr int32_t kMagicUint32 = 20240801;
constexpr int32_t kVersionUint32 = 7;

// llm.c numbers its files by the date of their format. A headerless shard can only begin like this
// with a pair of ids of which the first is above 54,911: none of GPT-2's.
constexpr bool looks_like_magic(int32_t word) {
  return word > 20240000 && word < 20250000;
}

using Words = std::array<int32_t, 4>;  // the part of the header that is not zero

}  // namespace

std::optional<ShardHeader> read_shard_header(std::span<const std::byte> file,
                                             const std::filesystem::path& path) {
  if (file.size() < sizeof(int32_t)) {
    return std::nullopt;
  }
  Words words{};
  std::memcpy(words.data(), file.data(), std::min(file.size(), sizeof(words)));
  if (!looks_like_magic(words[0])) {
    return std::nullopt;
  }
  if (words[0] != kMagicUint16 && words[0] != kMagicUint32) {
    throw UsageError("{}: magic {} is another of llm.c's files, not a token shard (magic {} or {})",
                     path.string(), words[0], kMagicUint16, kMagicUint32);
  }
  if (file.size() < kShardHeaderBytes) {
    throw CorruptError("{}: {} bytes, cut off inside the header of {}", path.string(), file.size(),
                       kShardHeaderBytes);
  }
  ShardHeader header;
  header.format = words[0] == kMagicUint32 ? ShardFormat::kUint32 : ShardFormat::kUint16;
  const int32_t version = header.format == ShardFormat::kUint32 ? kVersionUint32 : kVersionUint16;
  if (words[1] != version) {
    throw UsageError("{}: version {} of shards with magic {}; this build reads version {}",
                     path.string(), words[1], words[0], version);
  }
  uint64_t count = 0;
  std::memcpy(&count, &words[2], sizeof(count));
  const uint64_t bytes = file.size() - kShardHeaderBytes;
  const auto width = static_cast<uint64_t>(token_bytes(header.format));
  if (bytes % width != 0 || count != bytes / width) {
    throw CorruptError(
        "{}: the header counts {} tokens of {} bytes but {} bytes follow it; the file is cut off "
        "or was changed",
        path.string(), count, width, bytes);
  }
  header.tokens = static_cast<int64_t>(count);
  return header;
}

std::vector<std::byte> shard_header_bytes(const ShardHeader& header) {
  const bool wide = header.format == ShardFormat::kUint32;
  Words words = {wide ? kMagicUint32 : kMagicUint16, wide ? kVersionUint32 : kVersionUint16};
  std::memcpy(&words[2], &header.tokens, sizeof(header.tokens));
  std::vector<std::byte> bytes(kShardHeaderBytes);
  std::memcpy(bytes.data(), words.data(), sizeof(words));
  return bytes;
}

}  // namespace lockstep
