#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/checkpoint_store.h"
#include "core/checkpoint/training_state.h"
#include "support/temporary_folder.h"

/// A folder of its own for each test, removed afterwards.
class CheckpointTest : public testing::Test {
 protected:
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  lockstep::TemporaryFolder folder_;
};

/// Tensors that own their data; every element depends on `salt`.
class OwnedTensors {
 public:
  OwnedTensors(std::vector<std::pair<std::string, std::vector<int64_t>>> shapes, uint32_t salt) {
    for (auto& [name, shape] : shapes) {
      int64_t elements = 1;
      for (const int64_t dimension : shape) {
        elements *= dimension;
      }
      std::vector<float>& data = data_.emplace_back(static_cast<size_t>(elements));
      for (size_t i = 0; i < data.size(); ++i) {
        salt = salt * 1664525U + 1013904223U;
        data[i] = static_cast<float>(static_cast<int32_t>(salt)) * 0x1p-31F;
      }
      named_.push_back({std::move(name), std::move(shape), data});
    }
  }

  const std::vector<lockstep::NamedTensor>& named() const { return named_; }
  std::vector<float>& data(size_t index) { return data_[index]; }

 private:
  std::vector<std::vector<float>> data_;
  std::vector<lockstep::NamedTensor> named_;
};

inline OwnedTensors small_tensors(uint32_t salt) {
  return {{{"parameters/wte", {7, 5}}, {"parameters/ln_f", {5}}, {"adam_m/wte", {7, 5}}}, salt};
}

inline lockstep::TrainingState small_state(int64_t step) {
  lockstep::TrainingState state;
  state.model = {65, 64, 4, 2, 128, lockstep::Gelu::kErf};
  state.step = step;
  state.seed = 0xfedcba9876543210U;
  state.samples_seen = 12 * step;
  state.global_batch = 12;
  state.train_loss = 1.875;
  state.val_loss = std::numeric_limits<double>::quiet_NaN();
  state.best_val_loss = 1.75;
  state.world_size = 3;
  state.device = "cpu";
  state.precision = "fp32";
  state.build_id = "a build";
  state.dataset_fingerprint = "0123abcd";
  state.tokenizer_json = "{\"kind\": \"char\"}";
  state.options = {{"learning-rate", "0.001"}, {"data-dir", "not \xff UTF-8"}};
  return state;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Changes one bit in place.
inline void flip_bit(const std::filesystem::path& path, size_t bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(bit / 8));
  file.put(static_cast<char>(byte ^ (1 << (bit % 8))));
}

/// The tensors of a checkpoint by name.
inline std::map<std::string, std::vector<float>> read_tensors(
    const lockstep::CheckpointReader& reader) {
  std::map<std::string, std::vector<float>> found;
  reader.read([&found](const lockstep::CheckpointReader::TensorInfo& tensor) {
    std::vector<float>& data = found[tensor.name];
    data.resize(static_cast<size_t>(tensor.elements));
    return std::span(data);
  });
  return found;
}
