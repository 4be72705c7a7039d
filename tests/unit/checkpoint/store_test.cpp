// What an output folder holds after saves, interrupted saves and damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

class Store : public CheckpointTest {
 protected:
  fs::path run() const { return folder() / "run"; }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(run())) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  static fs::path save(CheckpointStore& store, int64_t step) {
    return store.save(small_state(step), small_tensors(static_cast<uint32_t>(step)).named());
  }

  static void damage(const fs::path& file) { flip_bit(file, 8 * (fs::file_size(file) / 2)); }
};

TEST_F(Store, IsEmptyAtFirst) {
  const CheckpointStore store(run() / "deeper" / "", 3);
  EXPECT_FALSE(store.newest());
  EXPECT_THROW(CheckpointReader{run()}, IoError);
}

TEST_F(Store, KeepsTheLastSavedAndNamesTheNewest) {
  CheckpointStore store(run(), 2);
  for (const int64_t step : {9, 10, 11, 123456789}) {
    save(store, step);
  }
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000011", "step_123456789"));
  EXPECT_EQ(read_bytes(run() / "latest"), "step_123456789\n");
  EXPECT_EQ(store.newest(), run() / "step_123456789");
}

TEST_F(Store, KeepsAllWhenAsked) {
  CheckpointStore store(run(), 0);
  for (int64_t step = 0; step < 5; ++step) {
    save(store, step);
  }
  EXPECT_EQ(names().size(), 6U);
}

// A run that goes back and continues from an older step: its checkpoints are the newer ones.
TEST_F(Store, OrdersBySaveNotByStep) {
  {
    CheckpointStore store(run(), 3);
    for (const int64_t step : {10, 20, 30}) {
      save(store, step);
    }
  }
  CheckpointStore store(run(), 3);
  save(store, 15);
  EXPECT_EQ(store.newest(), run() / "step_00000015");
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000015", "step_00000020", "step_00000030"));
  save(store, 16);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000015", "step_00000016", "step_00000030"));
}

TEST_F(Store, ReplacesACheckpointOfTheSameStep) {
  CheckpointStore store(run(), 2);
  save(store, 1);
  const OwnedTensors replacing = small_tensors(77);
  store.save(small_state(1), replacing.named());
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000001"));
  EXPECT_THAT(CheckpointReader(run()).read_tensor(1), ElementsAreArray(replacing.named()[1].data));
}

TEST_F(Store, PassesOverDamagedCheckpoints) {
  CheckpointStore store(run(), 0);
  for (const int64_t step : {1, 2, 3, 4, 5}) {
    save(store, step);
  }
  damage(run() / "step_00000005" / "tensors.rec");
  damage(run() / "step_00000004" / "manifest.rec");
  fs::remove(run() / "step_00000003" / "tensors.rec");
  testing::internal::CaptureStderr();
  EXPECT_EQ(store.newest(), run() / "step_00000002");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("step_00000005/tensors.rec: offset"),
                    HasSubstr("step_00000004/manifest.rec: offset"),
                    HasSubstr("step_00000003: not a whole checkpoint: tensors.rec is missing")));
  EXPECT_EQ(CheckpointReader(run()).path(), run() / "step_00000002");
}

TEST_F(Store, PassesOverAFileNamedLikeACheckpoint) {
  CheckpointStore store(run(), 0);
  save(store, 1);
  write_bytes(run() / "step_00000009", "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(CheckpointReader(run()).path(), run() / "step_00000001");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("step_00000009: not a whole checkpoint: manifest.rec is missing"));
  save(store, 9);
  EXPECT_EQ(store.newest(), run() / "step_00000009");
}

TEST_F(Store, DoesNotPassForEmptyWhenAllIsDamaged) {
  CheckpointStore store(run(), 0);
  damage(save(store, 1) / "tensors.rec");
  EXPECT_THROW(store.newest(), CorruptError);
}

TEST_F(Store, DoesNotNeedLatest) {
  CheckpointStore store(run(), 0);
  save(store, 1);
  save(store, 2);
  write_bytes(run() / "latest", "step_00000001\n");
  EXPECT_EQ(store.newest(), run() / "step_00000002");
  fs::remove(run() / "latest");
  EXPECT_EQ(store.newest(), run() / "step_00000002");
}

TEST_F(Store, CleansUpAfterInterruptedSavesAndNothingElse) {
  {
    CheckpointStore store(run(), 0);
    save(store, 1);
  }
  const std::string random = "_123_0123456789abcdef";
  for (const char* ours :
       {".saving_step_00000002", ".removing_step_00000000", ".replaced_step_00000001"}) {
    fs::create_directory(run() / (ours + random));
    write_bytes(run() / (ours + random) / "tensors.rec", "half");
  }
  write_bytes(run() / "latest.tmp", "half");
  const std::vector<std::string> others = {".saving_step_00000002",
                                           ".saving_step_2_123_0123456789abcdef",
                                           ".saving_step_00000002_123_short",
                                           ".saving_step_00000002_x_0123456789abcdef",
                                           ".saving_x",
                                           "metrics.jsonl"};
  for (const std::string& other : others) {
    write_bytes(run() / other, "mine");
  }
  // A link under one of our names: it goes, what it points to stays.
  write_bytes(folder() / "precious", "mine");
  fs::create_directory(folder() / "precious_folder");
  write_bytes(folder() / "precious_folder" / "file", "mine");
  fs::create_symlink(folder() / "precious_folder", run() / (".removing_step_00000007" + random));

  const CheckpointStore store(run(), 0);
  std::vector<std::string> expected = others;
  expected.insert(expected.end(), {"latest", "step_00000001"});
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names(), expected);
  EXPECT_EQ(read_bytes(folder() / "precious_folder" / "file"), "mine");
}

// A crash between the two renames of a file system that cannot exchange names.
TEST_F(Store, RestoresACheckpointWhoseReplacementDidNotArrive) {
  {
    CheckpointStore store(run(), 0);
    save(store, 1);
  }
  fs::rename(run() / "step_00000001", run() / ".replaced_step_00000001_123_0123456789abcdef");
  const CheckpointStore store(run(), 0);
  EXPECT_EQ(store.newest(), run() / "step_00000001");
}

TEST_F(Store, BelongsToOneRunAtATime) {
  const CheckpointStore store(run(), 0);
  try {
    const CheckpointStore second(run(), 0);
    ADD_FAILURE() << "two stores of one folder";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(run().string()), HasSubstr("--out-dir")));
  }
}

TEST_F(Store, HoldsAFolderThatWasMadeAnew) {
  CheckpointStore store(run(), 0);
  fs::remove_all(run());
  EXPECT_THROW(save(store, 1), IoError);
  fs::create_directories(run());
  save(store, 2);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000002"));
  EXPECT_THROW(CheckpointStore(run(), 0), UsageError);
}

TEST_F(Store, LeavesAFolderThatAnotherRunMadeAnew) {
  CheckpointStore store(run(), 0);
  fs::remove_all(run());
  CheckpointStore other(run(), 0);
  save(other, 1);
  const std::string before = read_bytes(run() / "step_00000001" / "manifest.rec");
  try {
    save(store, 1);
    ADD_FAILURE() << "saved into another run's folder";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("step 1 could not be saved"), HasSubstr("another run")));
  }
  EXPECT_EQ(read_bytes(run() / "step_00000001" / "manifest.rec"), before);
  save(other, 2);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000001", "step_00000002"));
}

TEST_F(Store, TellsAFolderThatCannotBe) {
  write_bytes(folder() / "file", "");
  EXPECT_THROW(CheckpointStore(folder() / "file", 0), IoError);
  EXPECT_THROW(CheckpointStore(folder() / "file" / "below", 0), IoError);
  EXPECT_THROW(CheckpointStore("/proc/self/no-folder-can-be-here", 0), IoError);
}

}  // namespace
}  // namespace lockstep
