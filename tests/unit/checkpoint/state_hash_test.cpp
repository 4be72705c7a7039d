#include "core/checkpoint/state_hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

using StateHash = CheckpointTest;

TEST_F(StateHash, IsTheSameInMemoryAndInACheckpoint) {
  const OwnedTensors tensors = small_tensors(4);
  CheckpointStore store(folder(), 1);
  const CheckpointReader reader(store.save(small_state(5), tensors.named()));
  EXPECT_EQ(state_hash(reader), state_hash(small_state(5), tensors.named()));
}

TEST_F(StateHash, ChangesWithEverythingThatDecidesHowTheRunGoesOn) {
  const OwnedTensors tensors = small_tensors(4);
  const std::string before = state_hash(small_state(5), tensors.named());
  const std::vector<std::function<void(TrainingState&)>> changes = {
      [](TrainingState& s) { ++s.model.vocab_size; },
      [](TrainingState& s) { ++s.model.block_size; },
      [](TrainingState& s) { ++s.model.n_layer; },
      [](TrainingState& s) { ++s.model.n_head; },
      [](TrainingState& s) { ++s.model.n_embd; },
      [](TrainingState& s) { s.model.gelu = Gelu::kTanh; },
      [](TrainingState& s) { ++s.step; },
      [](TrainingState& s) { ++s.seed; },
      [](TrainingState& s) { ++s.samples_seen; },
      [](TrainingState& s) { ++s.global_batch; },
      [](TrainingState& s) { s.train_loss = std::nextafter(s.train_loss, 2.0); },
      [](TrainingState& s) { s.val_loss = 1; },
      [](TrainingState& s) { s.best_val_loss = 1; },
      [](TrainingState& s) { s.precision += "x"; },
      [](TrainingState& s) { s.dataset_fingerprint += "x"; },
      [](TrainingState& s) { s.tokenizer_json += "x"; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    TrainingState state = small_state(5);
    changes[i](state);
    EXPECT_NE(state_hash(state, tensors.named()), before) << "change " << i;
  }
}

TEST_F(StateHash, ChangesWithEachTensor) {
  const std::vector<float> data = {1, 2, 3, 4, 5, 6};
  const auto hash = [](const std::vector<NamedTensor>& tensors) {
    return state_hash(small_state(1), tensors);
  };
  const std::string before = hash({{"a", {2, 3}, data}});
  std::vector<float> changed = data;
  changed[5] = std::nextafter(changed[5], 7.0F);
  EXPECT_NE(hash({{"a", {2, 3}, changed}}), before);
  EXPECT_NE(hash({{"b", {2, 3}, data}}), before);
  EXPECT_NE(hash({{"a", {3, 2}, data}}), before);
  EXPECT_NE(hash({{"a", {2, 3}, data}, {"b", {0}, {}}}), before);
}

TEST_F(StateHash, DoesNotAskWhoWroteTheState) {
  TrainingState state = small_state(5);
  const std::string before = state_hash(state, {});
  state.world_size = 8;
  state.device = "cuda";
  state.build_id = "another build";
  state.options["resume"] = "true";
  state.val_loss = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(state_hash(state, {}), before);
}

}  // namespace
}  // namespace lockstep
