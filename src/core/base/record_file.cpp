#include "core/base/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/crc32c.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

constexpr size_t kHeadBytes = 12;
constexpr size_t kBufferBytes = size_t{256} << 10;
// Checksum and copy go over the same piece one after the other, so that the second finds it in the
// cache.
constexpr size_t kPieceBytes = size_t{256} << 10;

template <class T>
void append_raw(std::string* out, T value) {
  std::array<char, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(T));
  out->append(bytes.data(), bytes.size());
}

template <class T>
T load_raw(const std::byte* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

}  // namespace

RecordWriter::RecordWriter(std::filesystem::path path)
    : path_(std::move(path)), fd_(open_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)) {
  buffer_.reserve(2 * kBufferBytes);
}

void RecordWriter::reserve(int64_t bytes) {
  while (bytes > 0 && ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, bytes) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
      return;
    }
    if (errno != EINTR) {
      throw_io("reserve room for", path_);
    }
  }
}

uint32_t RecordWriter::append(std::span<const std::byte> record) {
  const auto length = static_cast<uint64_t>(record.size());
  append_raw(&buffer_, length);
  append_raw(&buffer_, masked_crc32c(crc32c(std::as_bytes(std::span(&length, 1)))));
  uint32_t crc = 0;
  if (record.size() < kBufferBytes) {
    crc = crc32c(record);
    buffer_.append(reinterpret_cast<const char*>(record.data()), record.size());
  } else {
    flush();
    for (std::span<const std::byte> rest = record; !rest.empty();) {
      const auto piece = rest.first(std::min(rest.size(), kPieceBytes));
      crc = crc32c(piece, crc);
      write_large(piece);
      rest = rest.subspan(piece.size());
    }
    // Only a hint: the disk starts on this record while the next is prepared. Whatever goes wrong
    // is reported by fsync.
    ::sync_file_range(fd_.get(), written_ - static_cast<int64_t>(record.size()),
                      static_cast<int64_t>(record.size()), SYNC_FILE_RANGE_WRITE);
  }
  append_raw(&buffer_, masked_crc32c(crc));
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
  return crc;
}

void RecordWriter::write_large(std::span<const std::byte> bytes) {
  write_all(fd_.get(), bytes, path_);
  written_ += static_cast<int64_t>(bytes.size());
}

void RecordWriter::flush() {
  write_large(bytes_of(buffer_));
  buffer_.clear();
}

void RecordWriter::sync() {
  flush();
  sync_file(fd_.get(), path_);
}

void RecordWriter::truncate(int64_t bytes) {
  buffer_.clear();
  if (::ftruncate(fd_.get(), bytes) != 0 || ::lseek(fd_.get(), bytes, SEEK_SET) != bytes) {
    throw_io("truncate", path_);
  }
  written_ = bytes;
}

RecordReader::RecordReader(std::filesystem::path path)
    // A pipe under the file's name must not block the reader.
    : path_(std::move(path)), fd_(open_file(path_, O_RDONLY | O_NONBLOCK)) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) {
    throw_io("read the size of", path_);
  }
  if (!S_ISREG(status.st_mode)) {
    throw CorruptError("{}: not a regular file", path_.string());
  }
  size_ = status.st_size;
}

std::string RecordReader::read(int64_t limit) {
  std::string record(static_cast<size_t>(read_length(limit)), '\0');
  read_body(std::as_writable_bytes(std::span(record)));
  return record;
}

uint32_t RecordReader::read_into(std::span<std::byte> out) {
  const auto expected = static_cast<int64_t>(out.size());
  const int64_t length = read_length(expected);
  if (length != expected) {
    corrupt(offset_, fmt::format("a record of {} bytes where {} belong", length, expected));
  }
  return read_body(out);
}

int64_t RecordReader::read_length(int64_t limit) {
  std::array<std::byte, kHeadBytes> head{};
  const int64_t rest = size_ - offset_;
  if (rest < kRecordFrameBytes) {
    corrupt(offset_, fmt::format("the file ends inside a record ({} bytes left)", rest));
  }
  read_exactly(head, offset_);
  const auto length = load_raw<uint64_t>(head.data());
  if (load_raw<uint32_t>(head.data() + sizeof(length)) !=
      masked_crc32c(crc32c(std::span(head).first(sizeof(length))))) {
    corrupt(offset_, "the checksum of a record's length does not match");
  }
  if (length > static_cast<uint64_t>(rest - kRecordFrameBytes)) {
    corrupt(offset_, fmt::format("a record of {} bytes, but the file ends {} bytes later", length,
                                 rest - kRecordFrameBytes));
  }
  if (length > static_cast<uint64_t>(limit)) {
    corrupt(offset_, fmt::format("a record of {} bytes where at most {} belong", length, limit));
  }
  return static_cast<int64_t>(length);
}

uint32_t RecordReader::read_body(std::span<std::byte> out) {
  const int64_t body = offset_ + static_cast<int64_t>(kHeadBytes);
  uint32_t crc = 0;
  for (size_t done = 0; done < out.size();) {
    const auto piece = out.subspan(done, std::min(out.size() - done, kPieceBytes));
    read_exactly(piece, body + static_cast<int64_t>(done));
    crc = crc32c(piece, crc);
    done += piece.size();
  }
  std::array<std::byte, sizeof(uint32_t)> stored{};
  read_exactly(stored, body + static_cast<int64_t>(out.size()));
  if (load_raw<uint32_t>(stored.data()) != masked_crc32c(crc)) {
    corrupt(offset_,
            fmt::format("the checksum of a record of {} bytes does not match", out.size()));
  }
  offset_ += kRecordFrameBytes + static_cast<int64_t>(out.size());
  return crc;
}

void RecordReader::read_exactly(std::span<std::byte> out, int64_t offset) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_.get(), out.data(), out.size(), offset);
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      const int reason = errno;
      throw IoError("cannot read {} at offset {}: {}", path_.string(), offset,
                    std::strerror(reason));
    }
    if (got == 0) {
      corrupt(offset, "the file became shorter while it was read");
    }
    out = out.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

void RecordReader::corrupt(int64_t offset, const std::string& what) const {
  throw CorruptError("{}: offset {}: {}", path_.string(), offset, what);
}

}  // namespace lockstep
