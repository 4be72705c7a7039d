// Accidents to the files of a checkpoint: each is refused, with the place, without a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The message with which a checkpoint is refused; empty when it is accepted.
std::string refusal(const std::filesystem::path& folder) {
  try {
    CheckpointReader(folder).verify();
    return {};
  } catch (const CorruptError& error) {
    return error.what();
  }
}

class Damage : public CheckpointTest {
 protected:
  std::filesystem::path save(const std::string& run, int64_t step, uint32_t salt) {
    CheckpointStore store(folder() / run, 0);
    return store.save(small_state(step), small_tensors(salt).named());
  }
};

TEST_F(Damage, EveryTruncationIsRefused) {
  const auto place = save("run", 1, 1);
  for (const char* name : {"manifest.rec", "tensors.rec"}) {
    const std::string whole = read_bytes(place / name);
    for (size_t length = whole.size(); length-- > 0;) {
      std::filesystem::resize_file(place / name, length);
      ASSERT_THAT(refusal(place), AllOf(HasSubstr(name), HasSubstr("offset"))) << length;
    }
    write_bytes(place / name, whole + '\0');
    EXPECT_THAT(refusal(place), HasSubstr(name));
    write_bytes(place / name, whole);
  }
  EXPECT_EQ(refusal(place), "");
}

TEST_F(Damage, EveryFlippedBitOfASmallCheckpointIsRefused) {
  const auto place = save("run", 1, 1);
  for (const char* name : {"manifest.rec", "tensors.rec"}) {
    const size_t bits = 8 * std::filesystem::file_size(place / name);
    for (size_t bit = 0; bit < bits; ++bit) {
      flip_bit(place / name, bit);
      ASSERT_THAT(refusal(place), HasSubstr(name)) << "bit " << bit;
      flip_bit(place / name, bit);
    }
  }
  EXPECT_EQ(refusal(place), "");
}

TEST_F(Damage, FlippedBitsOfTensorDataAreRefused) {
  const OwnedTensors tensors({{"parameters/wte", {64, 128}}, {"adam_m/wte", {64, 120}}}, 3);
  CheckpointStore store(folder() / "run", 0);
  const auto place = store.save(small_state(1), tensors.named());
  const size_t bits = 8 * std::filesystem::file_size(place / "tensors.rec");
  std::mt19937_64 random(17);
  for (int i = 0; i < 10000; ++i) {
    const size_t bit = random() % bits;
    flip_bit(place / "tensors.rec", bit);
    ASSERT_THAT(refusal(place), HasSubstr("tensors.rec: offset")) << "bit " << bit;
    flip_bit(place / "tensors.rec", bit);
  }
  EXPECT_EQ(refusal(place), "");
}

/// A file of records, cut into whole records (frames included).
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t offset = 0; offset < file.size();) {
    uint64_t length = 0;
    std::memcpy(&length, file.data() + offset, sizeof(length));
    records.push_back(file.substr(offset, length + 16));
    offset += length + 16;
  }
  return records;
}

std::string joined(const std::vector<std::string>& records) {
  std::string file;
  for (const std::string& record : records) {
    file += record;
  }
  return file;
}

// small_tensors: a header, then two records each of wte, ln_f and m of wte, which is of wte's
// shape.
constexpr size_t kRecords = 7;

TEST_F(Damage, SwappedTensorsAreRefused) {
  const auto place = save("run", 1, 1);
  std::vector<std::string> records = records_of(read_bytes(place / "tensors.rec"));
  ASSERT_EQ(records.size(), kRecords);

  std::vector<std::string> data_only = records;
  std::swap(data_only[2], data_only[6]);
  write_bytes(place / "tensors.rec", joined(data_only));
  EXPECT_THAT(refusal(place), AllOf(HasSubstr("parameters/wte"), HasSubstr("offset")));

  std::swap(records[1], records[5]);
  std::swap(records[2], records[6]);
  write_bytes(place / "tensors.rec", joined(records));
  EXPECT_THAT(refusal(place), AllOf(HasSubstr("parameters/wte"), HasSubstr("offset")));
}

TEST_F(Damage, RecordsOfAnotherSaveAreRefused) {
  const auto place = save("run", 1, 1);
  const auto other = save("other", 1, 1);  // the same step and the same bits, another save
  const std::vector<std::string> mine = records_of(read_bytes(place / "tensors.rec"));
  const std::vector<std::string> theirs = records_of(read_bytes(other / "tensors.rec"));
  ASSERT_EQ(joined(mine).size(), joined(theirs).size());
  for (const size_t spliced : {0, 1, 3, 5}) {
    std::vector<std::string> records = mine;
    records[spliced] = theirs[spliced];
    write_bytes(place / "tensors.rec", joined(records));
    EXPECT_THAT(refusal(place), AllOf(HasSubstr("tensors.rec: offset"), HasSubstr("another save")));
  }
}

TEST_F(Damage, DataOfAnotherStepIsRefused) {
  const auto place = save("run", 1, 1);
  const auto later = save("run", 2, 2);
  std::vector<std::string> records = records_of(read_bytes(place / "tensors.rec"));
  records[2] = records_of(read_bytes(later / "tensors.rec"))[2];
  write_bytes(place / "tensors.rec", joined(records));
  EXPECT_THAT(refusal(place), AllOf(HasSubstr("parameters/wte"), HasSubstr("manifest")));
}

TEST_F(Damage, FilesOfTwoStepsAreRefused) {
  const auto one = save("run", 1, 1);
  const auto two = save("run", 2, 2);
  std::filesystem::copy_file(one / "tensors.rec", two / "tensors.rec",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(two),
              AllOf(HasSubstr("another save"), HasSubstr("step 1"), HasSubstr("step 2")));
}

TEST_F(Damage, AMissingFileIsRefused) {
  for (const char* name : {"manifest.rec", "tensors.rec"}) {
    const auto place = save(name, 1, 1);
    std::filesystem::remove(place / name);
    EXPECT_THAT(refusal(place), AllOf(HasSubstr(name), HasSubstr("missing")));
  }
}

TEST_F(Damage, AFileOfAnotherKindIsRefused) {
  for (const char* name : {"manifest.rec", "tensors.rec"}) {
    const auto place = save(name, 1, 1);
    std::filesystem::remove(place / name);
    ASSERT_EQ(::mkfifo((place / name).c_str(), 0600), 0);
    EXPECT_THAT(refusal(place), HasSubstr("not a regular file"));  // and does not wait for a writer
    std::filesystem::remove(place / name);
    std::filesystem::create_directory(place / name);
    EXPECT_THAT(refusal(place), HasSubstr("not a regular file"));
  }
}

TEST_F(Damage, AFileThatIsNotOursHarmsNothing) {
  const auto place = save("run", 1, 1);
  write_bytes(place / "notes.txt", "this one is good");
  EXPECT_EQ(refusal(place), "");
}

TEST_F(Damage, ACopyUnderAnotherNameIsStillGood) {
  const auto place = save("run", 1, 1);
  std::filesystem::rename(place, folder() / "best");
  EXPECT_EQ(refusal(folder() / "best"), "");
}

}  // namespace
}  // namespace lockstep
