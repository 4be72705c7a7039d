#include "core/data/token_shard.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/data/shard_header.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are read as they lie in memory");

// Above this a fingerprint reads a sample: BLAKE2b takes 1 to 3 seconds per GiB, at every start.
constexpr size_t kWholeDigestBytes = size_t{256} << 20U;
constexpr size_t kSampleBytes = size_t{16} << 10U;
constexpr size_t kSamples = 256;

template <class T>
std::span<const T> view_as(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Calls `body` with the tokens as the type that they have in the file.
template <class Body>
auto visit(ShardFormat format, std::span<const std::byte> tokens, Body body) {
  return format == ShardFormat::kUint32 ? body(view_as<uint32_t>(tokens))
                                        : body(view_as<uint16_t>(tokens));
}

template <class T>
T largest(std::span<const T> tokens) {
  T result = 0;
  for (const T token : tokens) {
    result = std::max(result, token);
  }
  return result;
}

}  // namespace

TokenShard::TokenShard(const std::filesystem::path& path) : path_(path), file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  const std::optional<ShardHeader> header = read_shard_header(bytes, path);
  if (!header) {
    if (bytes.size() % sizeof(uint16_t) != 0) {
      throw CorruptError(
          "{}: {} bytes is an odd size; without llm.c's header a shard is a list of uint16, so it "
          "is cut off or not a shard",
          path.string(), bytes.size());
    }
    tokens_ = bytes;
    size_ = static_cast<int64_t>(bytes.size() / sizeof(uint16_t));
    return;
  }
  format_ = header->format;
  size_ = header->tokens;
  tokens_ = bytes.subspan(kShardHeaderBytes);
}

void TokenShard::check_length() const {
  if (file_.has_shrunk()) {
    throw CorruptError(
        "{}: the file became shorter while it was in use; stop what writes it (replace a shard by "
        "renaming, as tokenize does), then resume",
        path_.string());
  }
}

void TokenShard::read(int64_t begin, int64_t count, int64_t vocabulary, int32_t* out) const {
  LOCKSTEP_CHECK(begin >= 0 && count >= 0 && begin <= size_ - count, "tokens [{}, {}) of {} in {}",
                 begin, begin + count, size_, path_.string());
  check_length();
  visit(format_, tokens_, [&](auto all) {
    const auto tokens = all.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    std::copy(tokens.begin(), tokens.end(), out);
    if (static_cast<int64_t>(largest(tokens)) < vocabulary) {
      return;
    }
    const auto bad = std::find_if(tokens.begin(), tokens.end(), [vocabulary](auto token) {
      return static_cast<int64_t>(token) >= vocabulary;
    });
    if (bad != tokens.end()) {
      throw CorruptError("{}: token {} is {}, outside the vocabulary of {}", path_.string(),
                         begin + (bad - tokens.begin()), *bad, vocabulary);
    }
  });
}

int64_t TokenShard::largest_id() const {
  check_length();
  return size_ == 0 ? -1 : visit(format_, tokens_, [](auto tokens) {
    return static_cast<int64_t>(largest(tokens));
  });
}

std::optional<int64_t> TokenShard::first_id_outside(int64_t vocabulary) const {
  check_length();
  return visit(format_, tokens_, [vocabulary](auto tokens) -> std::optional<int64_t> {
    const auto found = std::find_if(tokens.begin(), tokens.end(), [vocabulary](auto token) {
      return static_cast<int64_t>(token) >= vocabulary;
    });
    return found == tokens.end() ? std::nullopt : std::optional<int64_t>(found - tokens.begin());
  });
}

std::string TokenShard::fingerprint() const {
  check_length();
  const std::span<const std::byte> bytes = file_.bytes();
  Digest digest;
  const auto size = static_cast<uint64_t>(bytes.size());
  digest.update(std::as_bytes(std::span(&size, 1)));
  if (bytes.size() <= kWholeDigestBytes) {
    digest.update(bytes);
  } else {
    // Evenly spread blocks: the first is the head, the last the tail.
    const size_t last = bytes.size() - kSampleBytes;
    for (size_t i = 0; i < kSamples; ++i) {
      const size_t begin = last / (kSamples - 1) * i + last % (kSamples - 1) * i / (kSamples - 1);
      digest.update(bytes.subspan(begin, kSampleBytes));
    }
  }
  return digest.hex();
}

}  // namespace lockstep
