// What is saved is what is loaded, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

using RoundTrip = CheckpointTest;

TEST_F(RoundTrip, KeepsTheWholeState) {
  CheckpointStore store(folder(), 2);
  const TrainingState saved = small_state(1000);
  const std::filesystem::path place = store.save(saved, small_tensors(1).named());
  EXPECT_EQ(place, folder() / "step_00001000");

  const CheckpointReader reader(place);
  const TrainingState& loaded = reader.state();
  EXPECT_EQ(loaded.model, saved.model);
  EXPECT_EQ(loaded.step, saved.step);
  EXPECT_EQ(loaded.seed, saved.seed);
  EXPECT_EQ(loaded.samples_seen, saved.samples_seen);
  EXPECT_EQ(loaded.global_batch, saved.global_batch);
  EXPECT_EQ(loaded.train_loss, saved.train_loss);
  EXPECT_TRUE(std::isnan(loaded.val_loss));
  EXPECT_EQ(loaded.best_val_loss, saved.best_val_loss);
  EXPECT_EQ(loaded.world_size, saved.world_size);
  EXPECT_EQ(loaded.device, saved.device);
  EXPECT_EQ(loaded.precision, saved.precision);
  EXPECT_EQ(loaded.build_id, saved.build_id);
  EXPECT_EQ(loaded.dataset_fingerprint, saved.dataset_fingerprint);
  EXPECT_EQ(loaded.tokenizer_json, saved.tokenizer_json);
  EXPECT_EQ(loaded.options, saved.options);
}

TEST_F(RoundTrip, KeepsEveryBitOfEveryTensor) {
  OwnedTensors tensors = small_tensors(7);
  // Bits that arithmetic would not keep: a signalling NaN's payload, a negative zero, a denormal.
  const std::vector<uint32_t> bits = {0x7f800001U, 0x80000000U, 0x00000001U, 0xffffffffU};
  std::memcpy(tensors.data(0).data(), bits.data(), sizeof(uint32_t) * bits.size());
  CheckpointStore store(folder(), 2);
  const CheckpointReader reader(store.save(small_state(1), tensors.named()));
  reader.verify();

  ASSERT_EQ(reader.tensors().size(), tensors.named().size());
  const auto loaded = read_tensors(reader);
  for (size_t i = 0; i < tensors.named().size(); ++i) {
    const NamedTensor& tensor = tensors.named()[i];
    EXPECT_EQ(reader.tensors()[i].name, tensor.name);
    EXPECT_EQ(reader.tensors()[i].shape, tensor.shape);
    const std::vector<float>& data = loaded.at(tensor.name);
    ASSERT_EQ(data.size(), tensor.data.size());
    EXPECT_EQ(std::memcmp(data.data(), tensor.data.data(), tensor.data.size_bytes()), 0);
  }
}

TEST_F(RoundTrip, CutsLargeTensorsIntoChunks) {
  const OwnedTensors tensors({{"scalar", {}}, {"large", {9, 1000003}}, {"empty", {0, 4}}}, 3);
  CheckpointStore store(folder(), 1);
  const CheckpointReader reader(store.save(small_state(1), tensors.named()));
  reader.verify();
  const auto loaded = read_tensors(reader);
  for (const NamedTensor& tensor : tensors.named()) {
    EXPECT_TRUE(std::equal(tensor.data.begin(), tensor.data.end(), loaded.at(tensor.name).begin(),
                           loaded.at(tensor.name).end()));
  }
}

TEST_F(RoundTrip, SkipsTensorsThatNobodyWants) {
  CheckpointStore store(folder(), 1);
  const OwnedTensors tensors = small_tensors(9);
  const CheckpointReader reader(store.save(small_state(1), tensors.named()));
  std::vector<float> data(5);
  reader.read([&data](const CheckpointReader::TensorInfo& tensor) {
    return tensor.name == "parameters/ln_f" ? std::span(data) : std::span<float>();
  });
  EXPECT_TRUE(std::equal(data.begin(), data.end(), tensors.named()[1].data.begin()));
}

TEST_F(RoundTrip, RefusesMemoryOfAnotherSize) {
  CheckpointStore store(folder(), 1);
  const CheckpointReader reader(store.save(small_state(1), small_tensors(9).named()));
  std::vector<float> data(4);
  EXPECT_THROW(reader.read([&data](const auto&) { return std::span(data); }), InternalError);
}

TEST_F(RoundTrip, RefusesToSaveWhatItCouldNotRead) {
  CheckpointStore store(folder(), 1);
  const std::vector<float> data(6);
  const auto save = [&](std::vector<NamedTensor> tensors) { store.save(small_state(1), tensors); };
  EXPECT_THROW(save({{"", {6}, data}}), InternalError);
  EXPECT_THROW(save({{"a", {5}, data}}), InternalError);
  EXPECT_THROW(save({{"a", {-2, -3}, data}}), InternalError);
  EXPECT_THROW(save({{"a", {6}, data}, {"a", {6}, data}}), InternalError);
  EXPECT_THROW(save({{std::string(1025, 'x'), {6}, data}}), InternalError);
  EXPECT_THROW(save({{"a", {1, 1, 1, 1, 1, 1, 1, 1, 6}, data}}), InternalError);
  EXPECT_FALSE(store.newest());
}

/// The tensors of one arena: memory for each, and what load says of a checkpoint of `saved`.
class Loading : public CheckpointTest {
 protected:
  std::string load(std::string_view prefix) {
    std::map<std::string, std::span<float>> memory;
    for (auto& [name, data] : wanted_) {
      memory[name] = data;
    }
    CheckpointStore store(folder(), 1);
    const CheckpointReader reader(store.save(small_state(1), saved_.named()));
    try {
      reader.load(prefix, memory);
    } catch (const CorruptError& error) {
      return std::string(error.what()).substr(reader.path().string().size());
    }
    return "loaded";
  }

  OwnedTensors saved_ = small_tensors(3);
  std::map<std::string, std::vector<float>> wanted_ = {{"parameters/wte", std::vector<float>(35)},
                                                       {"parameters/ln_f", std::vector<float>(5)}};
};

TEST_F(Loading, FillsByNameAndLeavesOtherPrefixesAlone) {
  EXPECT_EQ(load("parameters/"), "loaded");
  EXPECT_EQ(wanted_["parameters/wte"], saved_.data(0));
  EXPECT_EQ(wanted_["parameters/ln_f"], saved_.data(1));
}

TEST_F(Loading, NamesTheTensorThatIsTooMuch) {
  EXPECT_EQ(load(""), ": tensor adam_m/wte is none of this model");
  wanted_.erase("parameters/ln_f");
  EXPECT_EQ(load("parameters/"), ": tensor parameters/ln_f is none of this model");
}

TEST_F(Loading, NamesTheTensorThatIsMissing) {
  wanted_["parameters/wpe"].resize(3);
  EXPECT_EQ(load("parameters/"), ": tensor parameters/wpe is missing");
}

TEST_F(Loading, NamesTheTensorOfAnotherSizeAndReadsNothing) {
  wanted_["parameters/ln_f"].resize(6);
  EXPECT_EQ(load("parameters/"), ": tensor parameters/ln_f has 5 elements, not 6");
  EXPECT_EQ(wanted_["parameters/wte"], std::vector<float>(35));
}

}  // namespace
}  // namespace lockstep
