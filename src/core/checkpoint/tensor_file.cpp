#include "core/checkpoint/tensor_file.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxDescriptionBytes = 4096;  // of a header or chunk record; names are <= 1024

}  // namespace

int64_t tensor_bytes(std::span<const NamedTensor> tensors) {
  int64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.data.size_bytes());
  }
  return bytes;
}

void write_tensor_file(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                       Manifest* manifest) {
  manifest->tensors.clear();
  for (const NamedTensor& tensor : tensors) {
    manifest->tensors.push_back(
        {tensor.name, tensor.shape, static_cast<int64_t>(tensor.data.size()), 0, {}});
  }
  RecordWriter writer(folder / kTensorFile);
  writer.reserve(tensor_bytes(tensors));
  writer.append(bytes_of(encode_tensor_file_header(*manifest)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    ManifestTensor& entry = manifest->tensors[i];
    entry.offset = writer.size();
    for (int64_t first = 0; first < entry.elements; first += manifest->chunk_elements) {
      const int64_t count = std::min(manifest->chunk_elements, entry.elements - first);
      writer.append(bytes_of(encode_chunk(*manifest, i, first, count)));
      entry.chunk_crc32c.push_back(writer.append(std::as_bytes(
          tensors[i].data.subspan(static_cast<size_t>(first), static_cast<size_t>(count)))));
    }
  }
  writer.sync();
  manifest->tensor_file_bytes = writer.size();
}

TensorFileReader::TensorFileReader(const std::filesystem::path& folder, const Manifest& manifest)
    : manifest_(manifest), records_(existing_file(folder, kTensorFile)) {
  if (records_.size() != manifest.tensor_file_bytes) {
    corrupt(records_.size(),
            fmt::format("the file ends here, the manifest says at {}", manifest.tensor_file_bytes));
  }
  const std::string problem =
      tensor_file_header_problem(records_.read(kMaxDescriptionBytes), manifest);
  if (!problem.empty()) {
    corrupt(0, problem);
  }
  first_offset_ = records_.offset();
}

void TensorFileReader::read(size_t tensor_index, std::span<float> out) {
  const ManifestTensor& tensor = manifest_.tensors[tensor_index];
  LOCKSTEP_CHECK(static_cast<int64_t>(out.size()) == tensor.elements,
                 "room for {} elements of {}, which has {}", out.size(), tensor.name,
                 tensor.elements);
  read_chunks(tensor_index, [out](int64_t first, int64_t count) {
    return out.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  });
}

void TensorFileReader::verify() {
  std::vector<float> scratch;
  const auto room = [&scratch](int64_t /*first*/, int64_t count) {
    scratch.resize(std::max(scratch.size(), static_cast<size_t>(count)));
    return std::span(scratch).first(static_cast<size_t>(count));
  };
  int64_t end = first_offset_;
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
    if (manifest_.tensors[i].offset != end) {
      corrupt(end,
              fmt::format("bytes that belong to no tensor, before {}", manifest_.tensors[i].name));
    }
    read_chunks(i, room);
    end = records_.offset();
  }
  if (end != records_.size()) {
    corrupt(end, "bytes after the last tensor");
  }
}

void TensorFileReader::read_chunks(size_t tensor_index, const ChunkRoom& room) {
  const ManifestTensor& tensor = manifest_.tensors[tensor_index];
  records_.seek(tensor.offset);
  try {
    for (size_t chunk = 0; chunk < tensor.chunk_crc32c.size(); ++chunk) {
      const int64_t first = static_cast<int64_t>(chunk) * manifest_.chunk_elements;
      const int64_t count = std::min(manifest_.chunk_elements, tensor.elements - first);
      const int64_t announced_at = records_.offset();
      const std::string problem =
          chunk_problem(records_.read(kMaxDescriptionBytes), manifest_, tensor_index, first, count);
      if (!problem.empty()) {
        corrupt(announced_at, problem);
      }
      const int64_t data_at = records_.offset();
      if (records_.read_into(std::as_writable_bytes(room(first, count))) !=
          tensor.chunk_crc32c[chunk]) {
        corrupt(data_at, "not the data whose checksum the manifest holds");
      }
    }
  } catch (const CorruptError& error) {
    throw CorruptError("{} (tensor {})", error.what(), tensor.name);
  }
}

void TensorFileReader::corrupt(int64_t offset, const std::string& what) const {
  throw CorruptError("{}: offset {}: {}", records_.path().string(), offset, what);
}

}  // namespace lockstep
