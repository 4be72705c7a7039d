#include "core/checkpoint/checkpoint_folder.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/tensor_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step_";
constexpr size_t kStepDigits = 8;
constexpr size_t kRandomDigits = 16;

constexpr std::array<std::pair<TransientKind, std::string_view>, 3> kTransientPrefixes = {{
    {TransientKind::kSaving, ".saving_"},
    {TransientKind::kReplaced, ".replaced_"},
    {TransientKind::kRemoving, ".removing_"},
}};

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    found.push_back(it->path());
  }
  if (error) {
    throw IoError("cannot list {}: {}", folder.string(), error.message());
  }
  return found;
}

bool all_of_class(std::string_view text, const char* characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

struct Transient {
  TransientKind kind;
  std::string_view step_folder;
};

// Recognises exactly the names that transient_folder makes.
std::optional<Transient> parse_transient(std::string_view name) {
  for (const auto& [kind, prefix] : kTransientPrefixes) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    name.remove_prefix(prefix.size());
    const size_t random = name.rfind('_');
    const size_t pid = random == std::string_view::npos || random == 0
                           ? std::string_view::npos
                           : name.rfind('_', random - 1);
    if (pid == std::string_view::npos || name.size() - random - 1 != kRandomDigits ||
        !all_of_class(name.substr(random + 1), "0123456789abcdef") ||
        !all_of_class(name.substr(pid + 1, random - pid - 1), "0123456789") ||
        !parse_step_folder_name(name.substr(0, pid))) {
      return std::nullopt;
    }
    return Transient{kind, name.substr(0, pid)};
  }
  return std::nullopt;
}

}  // namespace

std::string step_folder_name(int64_t step) {
  return fmt::format("{}{:0{}}", kStepPrefix, step, kStepDigits);
}

std::optional<int64_t> parse_step_folder_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(kStepPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || step_folder_name(step) != name) {
    return std::nullopt;
  }
  return step;
}

std::vector<ListedCheckpoint> list_checkpoints(const fs::path& out_dir,
                                               std::vector<std::string>* problems) {
  std::vector<ListedCheckpoint> found;
  for (const fs::path& entry : entries(out_dir)) {
    if (!parse_step_folder_name(entry.filename().string())) {
      continue;
    }
    try {
      found.push_back({entry, read_manifest(entry).sequence});
    } catch (const CorruptError& error) {
      problems->emplace_back(error.what());
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.sequence, a.path) > std::tie(b.sequence, b.path);
  });
  return found;
}

std::optional<fs::path> newest_checkpoint(const fs::path& out_dir) {
  std::vector<std::string> problems;
  const std::vector<ListedCheckpoint> found = list_checkpoints(out_dir, &problems);
  const auto pass_over = [](const std::string& problem) {
    log("passing over a damaged checkpoint: {}", problem);
  };
  std::for_each(problems.begin(), problems.end(), pass_over);
  for (const ListedCheckpoint& checkpoint : found) {
    try {
      const Manifest manifest = read_manifest(checkpoint.path);
      TensorFileReader(checkpoint.path, manifest).verify();
      return checkpoint.path;
    } catch (const Error& error) {
      problems.emplace_back(error.what());
      pass_over(problems.back());
    }
  }
  if (!problems.empty()) {
    throw CorruptError("{}: no checkpoint is whole; the first problem is: {}", out_dir.string(),
                       problems.front());
  }
  return std::nullopt;
}

fs::path transient_folder(const fs::path& out_dir, TransientKind kind,
                          std::string_view step_folder) {
  std::string name(kTransientPrefixes[static_cast<size_t>(kind)].second);
  name += fmt::format("{}_{}_", step_folder, ::getpid());
  for (const char byte : random_bytes(kRandomDigits / 2)) {
    name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return out_dir / name;
}

void clean_transient_folders(const fs::path& out_dir) {
  for (const fs::path& entry : entries(out_dir)) {
    const std::string name = entry.filename().string();
    const std::optional<Transient> transient = parse_transient(name);
    if (!transient) {
      continue;
    }
    const fs::path place = out_dir / transient->step_folder;
    struct stat status {};
    if (transient->kind == TransientKind::kReplaced && ::lstat(place.c_str(), &status) != 0) {
      log("restoring {}, which an interrupted save had put aside", place.string());
      if (::rename(entry.c_str(), place.c_str()) != 0) {
        const int reason = errno;
        throw IoError("cannot rename {} to {}: {}", entry.string(), place.string(),
                      std::strerror(reason));
      }
      continue;
    }
    log("removing {}, left behind by an interrupted save", entry.string());
    remove_transient_folder(entry);
  }
}

void remove_checkpoint(const fs::path& folder) {
  const fs::path removing =
      transient_folder(folder.parent_path(), TransientKind::kRemoving, folder.filename().string());
  if (::rename(folder.c_str(), removing.c_str()) != 0) {
    const int reason = errno;
    log("cannot remove the old checkpoint {}: {}", folder.string(), std::strerror(reason));
    return;
  }
  remove_transient_folder(removing);
}

void remove_transient_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);  // removes links themselves, never what they point to
  if (error) {
    log("cannot remove {}: {}; it is not needed any more", folder.string(), error.message());
  }
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      const int reason = errno;
      throw IoError("cannot draw random bytes: {}", std::strerror(reason));
    }
  }
  return bytes;
}

}  // namespace lockstep
