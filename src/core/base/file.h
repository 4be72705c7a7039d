#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

/// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;
  /// Gives the descriptor up to the caller.
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// The bytes of a text.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Throws IoError "cannot WHAT PATH: REASON" for the system call that has just failed: reads errno.
[[noreturn]] void throw_io(std::string_view what, const std::filesystem::path& path);

/// Opens a file or throws IoError with the path and the system's reason. `flags` and `mode` as in
/// open(2).
UniqueFd open_file(const std::filesystem::path& path, int flags, mode_t mode = 0666);

/// Whether a path leads to what is open as `fd`, a file or a directory; false when that cannot be
/// told.
bool leads_to(const std::filesystem::path& path, int fd) noexcept;

/// Writes every byte or throws IoError; restarts after signals and short writes. `path` is for the
/// message.
void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path);

/// Flushes a file's data, or a directory's entries, to the disk, or throws IoError.
void sync_file(int fd, const std::filesystem::path& path);
void sync_directory(const std::filesystem::path& directory);

/// The whole of a file as bytes; throws IoError.
std::string read_file(const std::filesystem::path& path);

/// Creates or replaces `path` so that a crash leaves the old or the new content, never a part:
/// temporary file, fsync, rename, fsync of the directory. Of a link it replaces the file that it
/// leads to, and a device or a pipe it just writes to. Throws IoError.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// Throws IoError where replace_file could not begin: for a program to find out before long work
/// whether its results will have a place. Leaves all as it was.
void check_replaceable(const std::filesystem::path& path);

/// A read-only memory mapping of a whole file. An empty file maps to no bytes. Throws IoError.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept
      : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Whether the file is now shorter than the mapping: reading past its end would end the process
  /// (SIGBUS). One system call.
  bool has_shrunk() const noexcept;

 private:
  UniqueFd fd_;
  std::span<const std::byte> bytes_;
};

}  // namespace lockstep
