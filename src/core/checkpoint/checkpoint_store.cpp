#include "core/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/tensor_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLatestFile = "latest";
constexpr std::string_view kLatestTemporary = "latest.tmp";
constexpr int64_t kChunkElements = int64_t{4} << 20;  // 16 MiB
// Manifest, chunk descriptions and the folder itself, generously.
constexpr int64_t kDescriptionBytes = int64_t{1} << 20;

// Bytes that may be written to the file system of `folder`, or nothing when it does not say.
std::optional<int64_t> free_bytes(const fs::path& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0 || status.f_blocks == 0) {
    return std::nullopt;
  }
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
}

void create_folders(const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) {
    return;
  }
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (parent != folder) {
    create_folders(parent);
  }
  if (!folder.has_filename()) {
    return;  // "run/" was created as "run"
  }
  if (::mkdir(folder.c_str(), 0777) != 0) {
    throw_io("create the folder", folder);
  }
  sync_directory(parent);
}

bool is_present(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

// The folder that a save writes to; removed unless it was published.
class SavingFolder {
 public:
  explicit SavingFolder(fs::path path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0777) != 0) {
      throw_io("create", path_);
    }
  }
  ~SavingFolder() {
    if (!path_.empty()) {
      std::error_code ignored;  // the next start removes what stays
      fs::remove_all(path_, ignored);
    }
  }
  SavingFolder(const SavingFolder&) = delete;
  SavingFolder& operator=(const SavingFolder&) = delete;
  SavingFolder(SavingFolder&&) = delete;
  SavingFolder& operator=(SavingFolder&&) = delete;

  const fs::path& path() const { return path_; }

  // Gives the folder the name `place`. What had that name before is moved away whole: returns
  // where to.
  std::optional<fs::path> publish(const fs::path& place) {
    const fs::path saving = std::exchange(path_, {});
    std::optional<fs::path> replaced;
    if (is_present(place)) {
      if (::renameat2(AT_FDCWD, saving.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) {
        return saving;
      }
      if (errno != EINVAL && errno != ENOSYS) {
        path_ = saving;
        throw_io("replace", place);
      }
      // This file system cannot exchange two names. A crash between the two renames is undone by
      // clean_transient_folders.
      replaced = transient_folder(place.parent_path(), TransientKind::kReplaced,
                                  place.filename().string());
      if (::rename(place.c_str(), replaced->c_str()) != 0) {
        path_ = saving;
        throw_io("put aside", place);
      }
    }
    if (::rename(saving.c_str(), place.c_str()) != 0) {
      const int reason = errno;
      if (replaced) {
        ::rename(replaced->c_str(), place.c_str());
      }
      path_ = saving;
      errno = reason;
      throw_io("rename into place", place);
    }
    return replaced;
  }

 private:
  fs::path path_;
};

void check_tensors(const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    const auto size = static_cast<int64_t>(tensor.data.size());
    LOCKSTEP_CHECK(!tensor.name.empty() && tensor.name.size() <= kMaxTensorName &&
                       tensor.shape.size() <= kMaxTensorRank,
                   "tensor {} of {} dimensions", tensor.name, tensor.shape.size());
    LOCKSTEP_CHECK(element_count(tensor.shape, size) == size,
                   "tensor {} has {} elements, which are not its shape's", tensor.name, size);
    LOCKSTEP_CHECK(names.insert(tensor.name).second, "two tensors named {}", tensor.name);
  }
  LOCKSTEP_CHECK(tensors.size() <= kMaxTensors, "{} tensors", tensors.size());
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path out_dir, int64_t keep)
    : out_dir_(std::move(out_dir)), keep_(keep) {
  LOCKSTEP_CHECK(keep >= 0, "keep {} checkpoints", keep);
  create_folders(out_dir_);
  if (!hold_folder()) {
    throw UsageError("{} is in use by another run; give each run its own --out-dir",
                     out_dir_.string());
  }
  // What a save does first, so that a folder that cannot be written is told before any work.
  const fs::path probe = transient_folder(out_dir_, TransientKind::kSaving, step_folder_name(0));
  { const SavingFolder created_and_removed(probe); }
  clean_transient_folders(out_dir_);
  ::unlink((out_dir_ / kLatestTemporary).c_str());  // as replace_file names it
  std::vector<std::string> ignored;                 // newest() reports damaged ones
  const std::vector<ListedCheckpoint> found = list_checkpoints(out_dir_, &ignored);
  sequence_ = found.empty() ? 0 : found.front().sequence;
}

bool CheckpointStore::hold_folder() {
  if (lock_ && leads_to(out_dir_, lock_.get())) {
    return true;
  }
  UniqueFd folder = open_file(out_dir_, O_RDONLY | O_DIRECTORY);
  // A file system without locks is taken at the user's word.
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return false;
  }
  lock_ = std::move(folder);
  return true;
}

fs::path CheckpointStore::save(const TrainingState& state,
                               const std::vector<NamedTensor>& tensors) {
  LOCKSTEP_CHECK(state.step >= 0, "step {}", state.step);
  check_tensors(tensors);
  const std::string name = step_folder_name(state.step);
  fs::path place = out_dir_ / name;
  const int64_t needed = tensor_bytes(tensors) + kDescriptionBytes;
  std::optional<fs::path> replaced;
  try {
    if (!hold_folder()) {
      throw IoError("{} was made anew, and another run writes there", out_dir_.string());
    }
    const std::optional<int64_t> available = free_bytes(out_dir_);
    if (available && *available < needed) {
      throw IoError("the disk of {} is full", out_dir_.string());
    }
    SavingFolder saving(transient_folder(out_dir_, TransientKind::kSaving, name));
    Manifest manifest;
    manifest.checkpoint_id = random_bytes(kCheckpointIdBytes);
    manifest.sequence = ++sequence_;
    manifest.state = state;
    manifest.chunk_elements = kChunkElements;
    write_tensor_file(saving.path(), tensors, &manifest);
    write_manifest(saving.path(), manifest);
    sync_directory(saving.path());
    replaced = saving.publish(place);
    sync_directory(out_dir_);
  } catch (const IoError& error) {
    std::error_code unknown;
    if (!fs::exists(out_dir_, unknown) && !unknown) {
      throw IoError(
          "step {} could not be saved: {} is gone, deleted or unmounted, and the checkpoints in "
          "it; make it again and the next save can succeed",
          state.step, out_dir_.string());
    }
    const std::optional<int64_t> available = free_bytes(out_dir_);
    throw IoError(
        "step {} could not be saved: {} ({} bytes needed, {} free); older checkpoints "
        "are intact",
        state.step, error.what(), needed,
        available ? fmt::format("{}", *available) : "an unknown number");
  }
  replace_file(out_dir_ / kLatestFile, name + "\n");
  if (replaced) {
    remove_transient_folder(*replaced);
  }
  remove_old(place);
  return place;
}

void CheckpointStore::remove_old(const fs::path& just_saved) const {
  if (keep_ == 0) {
    return;
  }
  try {
    std::vector<std::string> ignored;  // what cannot be read is not ours to remove
    const std::vector<ListedCheckpoint> found = list_checkpoints(out_dir_, &ignored);
    for (auto i = static_cast<size_t>(keep_); i < found.size(); ++i) {
      if (found[i].path != just_saved) {
        remove_checkpoint(found[i].path);
      }
    }
  } catch (const IoError& error) {
    // The save itself is done and safe.
    log("cannot remove old checkpoints: {}", error.what());
  }
}

std::optional<fs::path> CheckpointStore::newest() const {
  return newest_checkpoint(out_dir_);
}

}  // namespace lockstep
