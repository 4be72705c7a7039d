#include "core/data/token_shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/data/shard_header.h"

namespace lockstep {
namespace {

constexpr int64_t kUint16Symbols = 65536;

template <class T>
void pack(std::span<const int32_t> tokens, std::vector<std::byte>* out) {
  out->resize(tokens.size() * sizeof(T));
  std::transform(tokens.begin(), tokens.end(), reinterpret_cast<T*>(out->data()),
                 [](int32_t token) { return static_cast<T>(token); });
}

}  // namespace

TokenShardWriter::TokenShardWriter(std::filesystem::path path, int64_t vocabulary)
    : path_(std::move(path)),
      temporary_(path_),
      vocabulary_(vocabulary),
      format_(vocabulary > kUint16Symbols ? ShardFormat::kUint32 : ShardFormat::kUint16) {
  temporary_ += ".tmp";
  fd_ = open_file(temporary_, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  // finish() writes the header, which counts the tokens.
  if (::lseek(fd_.get(), kShardHeaderBytes, SEEK_SET) < 0) {
    throw_io("write to", temporary_);
  }
}

TokenShardWriter::~TokenShardWriter() {
  if (fd_) {
    ::unlink(temporary_.c_str());
  }
}

void TokenShardWriter::append(std::span<const int32_t> tokens) {
  const auto bad = std::find_if(tokens.begin(), tokens.end(), [this](int32_t token) {
    return token < 0 || token >= vocabulary_;
  });
  LOCKSTEP_CHECK(bad == tokens.end(), "token {} of a vocabulary of {} for {}", *bad, vocabulary_,
                 path_.string());
  if (format_ == ShardFormat::kUint32) {
    pack<uint32_t>(tokens, &buffer_);
  } else {
    pack<uint16_t>(tokens, &buffer_);
  }
  write_all(fd_.get(), buffer_, temporary_);
  size_ += static_cast<int64_t>(tokens.size());
}

void TokenShardWriter::finish() {
  const std::vector<std::byte> header = shard_header_bytes({format_, size_});
  if (::lseek(fd_.get(), 0, SEEK_SET) != 0) {
    throw_io("write the header of", temporary_);
  }
  write_all(fd_.get(), header, temporary_);
  sync_file(fd_.get(), temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw_io("replace", path_);
  }
  fd_.reset();
  sync_directory(path_.has_parent_path() ? path_.parent_path() : ".");
}

}  // namespace lockstep
