#include "core/checkpoint/checkpoint_reader.h"

#include <utility>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/tensor_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// A checkpoint's own folder may have any name (people copy them); it is told by its files.
bool is_checkpoint_folder(const fs::path& path) {
  std::error_code error;
  fs::path folder = path;
  if (!folder.has_filename()) {
    folder = folder.parent_path();
  }
  return parse_step_folder_name(folder.filename().string()).has_value() ||
         fs::exists(path / kManifestFile, error) || fs::exists(path / kTensorFile, error);
}

fs::path resolve(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    throw IoError("{}: {}", path.string(),
                  error ? error.message() : std::string("not a checkpoint folder"));
  }
  if (is_checkpoint_folder(path)) {
    return path;
  }
  const std::optional<fs::path> newest = newest_checkpoint(path);
  if (!newest) {
    throw IoError("{}: no checkpoint here (a folder named step_ and a number)", path.string());
  }
  return *newest;
}

}  // namespace

CheckpointReader::CheckpointReader(const fs::path& path)
    : path_(resolve(path)), manifest_(std::make_shared<const Manifest>(read_manifest(path_))) {
  const TensorFileReader checked(path_, *manifest_);  // throws when missing or another save's
  for (const ManifestTensor& tensor : manifest_->tensors) {
    tensors_.push_back({tensor.name, tensor.shape, tensor.elements});
  }
}

const TrainingState& CheckpointReader::state() const {
  return manifest_->state;
}

void CheckpointReader::read(const std::function<std::span<float>(const TensorInfo&)>& into) const {
  TensorFileReader file(path_, *manifest_);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::span<float> out = into(tensors_[i]);
    if (!out.empty()) {
      file.read(i, out);
    }
  }
}

void CheckpointReader::check_tensors(std::string_view prefix,
                                     const std::map<std::string, int64_t>& elements) const {
  std::map<std::string, int64_t> missing = elements;
  for (const TensorInfo& tensor : tensors_) {
    if (!tensor.name.starts_with(prefix)) {
      continue;
    }
    const auto expected = missing.extract(tensor.name);
    if (expected.empty()) {
      throw CorruptError("{}: tensor {} is none of this model", path_.string(), tensor.name);
    }
    if (expected.mapped() != tensor.elements) {
      throw CorruptError("{}: tensor {} has {} elements, not {}", path_.string(), tensor.name,
                         tensor.elements, expected.mapped());
    }
  }
  if (!missing.empty()) {
    throw CorruptError("{}: tensor {} is missing", path_.string(), missing.begin()->first);
  }
}

void CheckpointReader::load(std::string_view prefix,
                            const std::map<std::string, std::span<float>>& memory) const {
  std::map<std::string, int64_t> elements;
  for (const auto& [name, span] : memory) {
    elements[name] = static_cast<int64_t>(span.size());
  }
  check_tensors(prefix, elements);
  read([&memory](const TensorInfo& tensor) {
    const auto found = memory.find(tensor.name);
    return found == memory.end() ? std::span<float>() : found->second;
  });
}

std::vector<float> CheckpointReader::read_tensor(size_t index) const {
  std::vector<float> data(static_cast<size_t>(tensors_[index].elements));
  TensorFileReader(path_, *manifest_).read(index, data);
  return data;
}

void CheckpointReader::verify() const {
  TensorFileReader(path_, *manifest_).verify();
}

}  // namespace lockstep
