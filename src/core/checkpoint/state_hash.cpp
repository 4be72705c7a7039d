#include "core/checkpoint/state_hash.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "core/base/digest.h"
#include "core/base/file.h"

namespace lockstep {
namespace {

void add(Digest* digest, int64_t value) {
  digest->update(std::as_bytes(std::span(&value, 1)));
}

// With its length, so that the end of one text cannot pass for the start of the next.
void add(Digest* digest, std::string_view text) {
  add(digest, static_cast<int64_t>(text.size()));
  digest->update(bytes_of(text));
}

void add(Digest* digest, double value) {
  if (std::isnan(value)) {
    value = std::numeric_limits<double>::quiet_NaN();  // one of its many forms
  }
  digest->update(std::as_bytes(std::span(&value, 1)));
}

void add(Digest* digest, const TrainingState& state) {
  const GptConfig& model = state.model;
  for (const int64_t value :
       {model.vocab_size, model.block_size, model.n_layer, model.n_head, model.n_embd,
        static_cast<int64_t>(model.gelu), state.step, static_cast<int64_t>(state.seed),
        state.samples_seen, state.global_batch}) {
    add(digest, value);
  }
  for (const double value : {state.train_loss, state.val_loss, state.best_val_loss}) {
    add(digest, value);
  }
  for (const std::string& text :
       {state.precision, state.dataset_fingerprint, state.tokenizer_json}) {
    add(digest, text);
  }
}

void add(Digest* digest, const std::string& name, const std::vector<int64_t>& shape,
         std::span<const float> data) {
  add(digest, name);
  add(digest, static_cast<int64_t>(shape.size()));
  for (const int64_t dimension : shape) {
    add(digest, dimension);
  }
  digest->update(std::as_bytes(data));
}

}  // namespace

std::string state_hash(const TrainingState& state, const std::vector<NamedTensor>& tensors) {
  Digest digest;
  add(&digest, state);
  for (const NamedTensor& tensor : tensors) {
    add(&digest, tensor.name, tensor.shape, tensor.data);
  }
  return digest.hex();
}

std::string state_hash(const CheckpointReader& reader) {
  Digest digest;
  add(&digest, reader.state());
  for (size_t i = 0; i < reader.tensors().size(); ++i) {
    const CheckpointReader::TensorInfo& tensor = reader.tensors()[i];
    add(&digest, tensor.name, tensor.shape, reader.read_tensor(i));
  }
  return digest.hex();
}

}  // namespace lockstep
