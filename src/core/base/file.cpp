#include "core/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace lockstep {
namespace {

/// What replace_file writes to.
struct Replaced {
  std::filesystem::path path;
  bool is_file = true;  ///< or will be one; else a device or a pipe
};

Replaced find_replaced(const std::filesystem::path& named) {
  std::error_code failed;  // to look: then the file is made, or opening it says why not
  const std::filesystem::file_status status = std::filesystem::status(named, failed);
  if (std::filesystem::is_directory(status)) {
    throw IoError("cannot create {}: it is a folder", named.string());
  }
  if (!std::filesystem::exists(status) || !std::filesystem::is_symlink(named, failed)) {
    return {named, !std::filesystem::exists(status) || std::filesystem::is_regular_file(status)};
  }
  const std::filesystem::path target = std::filesystem::canonical(named, failed);
  if (failed) {
    throw IoError("cannot follow {}: {}", named.string(), failed.message());
  }
  return {target, std::filesystem::is_regular_file(status)};
}

std::filesystem::path temporary_of(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  return temporary += ".tmp";
}

UniqueFd open_temporary(const std::filesystem::path& temporary) {
  return open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
}

}  // namespace

void UniqueFd::reset() noexcept {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

void throw_io(std::string_view what, const std::filesystem::path& path) {
  const int reason = errno;
  throw IoError("cannot {} {}: {}", what, path.string(), std::strerror(reason));
}

UniqueFd open_file(const std::filesystem::path& path, int flags, mode_t mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    throw_io((flags & O_ACCMODE) == O_RDONLY ? "open" : "create", path);
  }
  return UniqueFd(fd);
}

bool leads_to(const std::filesystem::path& path, int fd) noexcept {
  struct stat there = {};
  struct stat open = {};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(fd, &open) == 0 &&
         there.st_dev == open.st_dev && there.st_ino == open.st_ino;
}

void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw_io("write", path);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void sync_file(int fd, const std::filesystem::path& path) {
  if (::fsync(fd) != 0) {
    throw_io("flush to disk", path);
  }
}

void sync_directory(const std::filesystem::path& directory) {
  const UniqueFd fd = open_file(directory, O_RDONLY | O_DIRECTORY);
  sync_file(fd.get(), directory);
}

std::string read_file(const std::filesystem::path& path) {
  const UniqueFd fd = open_file(path, O_RDONLY);
  std::string content;
  std::string buffer(1U << 16U, '\0');
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got == 0) {
      return content;
    }
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw_io("read", path);
    }
    content.append(buffer, 0, static_cast<size_t>(got));
  }
}

void replace_file(const std::filesystem::path& named, std::string_view content) {
  const auto [path, is_file] = find_replaced(named);
  if (!is_file) {
    write_all(open_file(path, O_WRONLY).get(), bytes_of(content), path);
    return;
  }
  const std::filesystem::path temporary = temporary_of(path);
  try {
    {
      const UniqueFd fd = open_temporary(temporary);
      write_all(fd.get(), bytes_of(content), temporary);
      sync_file(fd.get(), temporary);
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw_io("replace", path);
    }
  } catch (const IoError&) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

void check_replaceable(const std::filesystem::path& named) {
  const auto [path, is_file] = find_replaced(named);
  if (is_file) {
    const std::filesystem::path temporary = temporary_of(path);
    open_temporary(temporary).reset();
    ::unlink(temporary.c_str());
  }
}

MappedFile::MappedFile(const std::filesystem::path& path)
    : fd_(open_file(path, O_RDONLY | O_NONBLOCK)) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) {
    throw_io("read the size of", path);
  }
  if (!S_ISREG(status.st_mode)) {
    throw IoError("cannot read {}: it is not a regular file", path.string());
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) {
    return;
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (address == MAP_FAILED) {
    throw_io("map", path);
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

bool MappedFile::has_shrunk() const noexcept {
  struct stat status {};
  return ::fstat(fd_.get(), &status) == 0 && static_cast<size_t>(status.st_size) < bytes_.size();
}

}  // namespace lockstep
