#include "core/checkpoint/manifest.h"

#include <checkpoint.pb.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "core/base/error.h"
#include "core/base/record_file.h"

namespace lockstep {
namespace {

void put_model(const GptConfig& model, checkpoint::Model* out) {
  out->set_vocab_size(model.vocab_size);
  out->set_block_size(model.block_size);
  out->set_n_layer(model.n_layer);
  out->set_n_head(model.n_head);
  out->set_n_embd(model.n_embd);
  out->set_gelu(model.gelu == Gelu::kErf ? checkpoint::GELU_ERF : checkpoint::GELU_TANH);
}

void put_state(const TrainingState& state, checkpoint::State* out) {
  put_model(state.model, out->mutable_model());
  out->set_step(state.step);
  out->set_seed(state.seed);
  out->set_samples_seen(state.samples_seen);
  out->set_global_batch(state.global_batch);
  out->set_train_loss(state.train_loss);
  out->set_val_loss(state.val_loss);
  out->set_best_val_loss(state.best_val_loss);
  out->set_world_size(state.world_size);
  out->set_device(state.device);
  out->set_precision(state.precision);
  out->set_build_id(state.build_id);
  out->set_dataset_fingerprint(state.dataset_fingerprint);
  out->set_tokenizer_json(state.tokenizer_json);
  for (const auto& [name, value] : state.options) {
    checkpoint::State::Option* option = out->add_options();
    option->set_name(name);
    option->set_value(value);
  }
}

TrainingState get_state(const checkpoint::State& in) {
  TrainingState state;
  state.model.vocab_size = in.model().vocab_size();
  state.model.block_size = in.model().block_size();
  state.model.n_layer = in.model().n_layer();
  state.model.n_head = in.model().n_head();
  state.model.n_embd = in.model().n_embd();
  state.model.gelu = in.model().gelu() == checkpoint::GELU_ERF ? Gelu::kErf : Gelu::kTanh;
  state.step = in.step();
  state.seed = in.seed();
  state.samples_seen = in.samples_seen();
  state.global_batch = in.global_batch();
  state.train_loss = in.train_loss();
  state.val_loss = in.val_loss();
  state.best_val_loss = in.best_val_loss();
  state.world_size = in.world_size();
  state.device = in.device();
  state.precision = in.precision();
  state.build_id = in.build_id();
  state.dataset_fingerprint = in.dataset_fingerprint();
  state.tokenizer_json = in.tokenizer_json();
  for (const checkpoint::State::Option& option : in.options()) {
    state.options[option.name()] = option.value();
  }
  return state;
}

// A model that cannot be would be allocated, or divided by, before anything else was compared.
void check_model(const checkpoint::Model& in, const GptConfig& model) {
  if (in.gelu() != checkpoint::GELU_TANH && in.gelu() != checkpoint::GELU_ERF) {
    throw CorruptError("the model has the unknown GELU {}", static_cast<int>(in.gelu()));
  }
  try {
    model.validate();
  } catch (const UsageError& error) {
    throw CorruptError("the model is not what a save writes: {}", error.what());
  }
}

// One tensor, held to the limits; throws what is wrong without saying where.
ManifestTensor get_tensor(const checkpoint::Tensor& in, const Manifest& manifest) {
  ManifestTensor tensor;
  tensor.name = in.name();
  if (tensor.name.empty() || tensor.name.size() > kMaxTensorName) {
    throw CorruptError("a tensor name of {} bytes", tensor.name.size());
  }
  if (in.data_type() != checkpoint::FLOAT32) {
    throw CorruptError("tensor {} has the unknown data type {}", tensor.name,
                       static_cast<int>(in.data_type()));
  }
  if (static_cast<size_t>(in.shape_size()) > kMaxTensorRank) {
    throw CorruptError("tensor {} has {} dimensions", tensor.name, in.shape_size());
  }
  tensor.shape.assign(in.shape().begin(), in.shape().end());
  const auto limit = manifest.tensor_file_bytes / static_cast<int64_t>(sizeof(float));
  const std::optional<int64_t> elements = element_count(tensor.shape, limit);
  if (!elements) {
    throw CorruptError("tensor {} is larger than the tensor file", tensor.name);
  }
  tensor.elements = *elements;
  tensor.offset = in.offset();
  tensor.chunk_crc32c.assign(in.chunk_crc32c().begin(), in.chunk_crc32c().end());
  if (static_cast<int64_t>(tensor.chunk_crc32c.size()) != manifest.chunk_count(tensor)) {
    throw CorruptError("tensor {} has {} chunk checksums for {} chunks", tensor.name,
                       tensor.chunk_crc32c.size(), manifest.chunk_count(tensor));
  }
  return tensor;
}

Manifest get_manifest(const checkpoint::Manifest& in) {
  if (in.format_version() != kCheckpointFormatVersion) {
    throw CorruptError("checkpoint format {}; this build reads format {}", in.format_version(),
                       kCheckpointFormatVersion);
  }
  Manifest manifest;
  manifest.checkpoint_id = in.checkpoint_id();
  manifest.sequence = in.sequence();
  manifest.chunk_elements = in.chunk_elements();
  manifest.tensor_file_bytes = in.tensor_file_bytes();
  if (manifest.checkpoint_id.size() != kCheckpointIdBytes || manifest.chunk_elements < 1 ||
      manifest.chunk_elements > kMaxChunkElements || manifest.tensor_file_bytes < 0 ||
      in.state().step() < 0 || static_cast<size_t>(in.tensors_size()) > kMaxTensors) {
    throw CorruptError(
        "checkpoint id of {} bytes, step {}, {} tensors in {} bytes, chunks of {} elements: not "
        "what a save writes",
        manifest.checkpoint_id.size(), in.state().step(), in.tensors_size(),
        manifest.tensor_file_bytes, manifest.chunk_elements);
  }
  manifest.state = get_state(in.state());
  check_model(in.state().model(), manifest.state.model);
  std::set<std::string> names;
  int64_t room = manifest.tensor_file_bytes;
  int64_t end = 0;
  for (const checkpoint::Tensor& tensor : in.tensors()) {
    manifest.tensors.push_back(get_tensor(tensor, manifest));
    const ManifestTensor& added = manifest.tensors.back();
    room -= added.elements * static_cast<int64_t>(sizeof(float));
    if (room < 0 || added.offset < end || added.offset > manifest.tensor_file_bytes) {
      throw CorruptError("tensor {} does not fit into the tensor file", added.name);
    }
    end = added.offset;
    if (!names.insert(added.name).second) {
      throw CorruptError("two tensors named {}", added.name);
    }
  }
  return manifest;
}

}  // namespace

std::optional<int64_t> element_count(std::span<const int64_t> shape, int64_t limit) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(elements, dimension, &elements)) {
      return std::nullopt;
    }
  }
  return elements <= limit ? std::optional(elements) : std::nullopt;
}

std::filesystem::path existing_file(const std::filesystem::path& folder, std::string_view name) {
  std::filesystem::path path = folder / name;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    throw CorruptError("{}: not a whole checkpoint: {} is missing", folder.string(), name);
  }
  return path;
}

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  checkpoint::Manifest out;
  out.set_format_version(kCheckpointFormatVersion);
  out.set_checkpoint_id(manifest.checkpoint_id);
  out.set_sequence(manifest.sequence);
  put_state(manifest.state, out.mutable_state());
  out.set_chunk_elements(manifest.chunk_elements);
  out.set_tensor_file_bytes(manifest.tensor_file_bytes);
  for (const ManifestTensor& tensor : manifest.tensors) {
    checkpoint::Tensor* entry = out.add_tensors();
    entry->set_name(tensor.name);
    entry->set_data_type(checkpoint::FLOAT32);
    entry->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    entry->set_offset(tensor.offset);
    entry->mutable_chunk_crc32c()->Add(tensor.chunk_crc32c.begin(), tensor.chunk_crc32c.end());
  }
  const std::string record = out.SerializeAsString();
  LOCKSTEP_CHECK(!record.empty() && static_cast<int64_t>(record.size()) <= kMaxRecordBytes,
                 "a manifest of {} bytes cannot be read back", record.size());
  RecordWriter writer(folder / kManifestFile);
  writer.append(bytes_of(record));
  writer.sync();
}

Manifest read_manifest(const std::filesystem::path& folder) {
  RecordReader reader(existing_file(folder, kManifestFile));
  const std::string record = reader.read(kMaxRecordBytes);
  try {
    if (!reader.at_end()) {
      throw CorruptError("bytes after the only record");
    }
    checkpoint::Manifest in;
    if (!in.ParseFromString(record)) {
      throw CorruptError("the record is not a manifest");
    }
    return get_manifest(in);
  } catch (const CorruptError& error) {
    throw CorruptError("{}: {}", reader.path().string(), error.what());
  }
}

std::string encode_tensor_file_header(const Manifest& manifest) {
  checkpoint::TensorFileHeader header;
  header.set_format_version(kCheckpointFormatVersion);
  header.set_checkpoint_id(manifest.checkpoint_id);
  header.set_step(manifest.state.step);
  header.set_tensor_count(static_cast<int64_t>(manifest.tensors.size()));
  return header.SerializeAsString();
}

std::string encode_chunk(const Manifest& manifest, size_t tensor_index, int64_t first_element,
                         int64_t elements) {
  checkpoint::Chunk chunk;
  chunk.set_checkpoint_id(manifest.checkpoint_id);
  chunk.set_tensor_index(static_cast<int64_t>(tensor_index));
  chunk.set_tensor_name(manifest.tensors[tensor_index].name);
  chunk.set_first_element(first_element);
  chunk.set_elements(elements);
  return chunk.SerializeAsString();
}

std::string tensor_file_header_problem(const std::string& record, const Manifest& manifest) {
  checkpoint::TensorFileHeader header;
  if (!header.ParseFromString(record)) {
    return "the first record is not a tensor file's header";
  }
  if (header.checkpoint_id() != manifest.checkpoint_id || header.step() != manifest.state.step) {
    return fmt::format(
        "the file belongs to another save (of step {}) than the manifest (of step {})",
        header.step(), manifest.state.step);
  }
  if (header.format_version() != kCheckpointFormatVersion ||
      header.tensor_count() != static_cast<int64_t>(manifest.tensors.size())) {
    return fmt::format("format {} with {} tensors where format {} with {} belongs",
                       header.format_version(), header.tensor_count(), kCheckpointFormatVersion,
                       manifest.tensors.size());
  }
  return {};
}

std::string chunk_problem(const std::string& record, const Manifest& manifest, size_t tensor_index,
                          int64_t first_element, int64_t elements) {
  checkpoint::Chunk chunk;
  if (!chunk.ParseFromString(record)) {
    return "the record does not announce a chunk";
  }
  if (chunk.checkpoint_id() != manifest.checkpoint_id) {
    return "the chunk belongs to another save";
  }
  if (chunk.tensor_index() != static_cast<int64_t>(tensor_index) ||
      chunk.tensor_name() != manifest.tensors[tensor_index].name ||
      chunk.first_element() != first_element || chunk.elements() != elements) {
    return fmt::format("elements [{}, {}) of {} where [{}, {}) belong", chunk.first_element(),
                       chunk.first_element() + chunk.elements(), chunk.tensor_name(), first_element,
                       first_element + elements);
  }
  return {};
}

}  // namespace lockstep
