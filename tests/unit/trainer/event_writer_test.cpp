// Reads an event file back by the published byte format alone: no protobuf, no code of the product.
#include "trainer/event_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "support/temporary_folder.h"

namespace lockstep {
namespace {

uint32_t bitwise_crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    }
  }
  return ~crc;
}

uint32_t mask(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <class T>
T take(std::string_view* bytes) {
  T value{};
  if (bytes->size() < sizeof(T)) {
    throw std::runtime_error("truncated");
  }
  std::memcpy(&value, bytes->data(), sizeof(T));
  bytes->remove_prefix(sizeof(T));
  return value;
}

std::vector<std::string> records_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  std::string_view rest = content;
  std::vector<std::string> records;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<uint64_t>(&rest);
    EXPECT_EQ(take<uint32_t>(&rest), mask(bitwise_crc32c(length_bytes)));
    records.emplace_back(rest.substr(0, length));
    EXPECT_EQ(records.back().size(), length);
    rest.remove_prefix(length);
    EXPECT_EQ(take<uint32_t>(&rest), mask(bitwise_crc32c(records.back())));
  }
  return records;
}

uint64_t take_varint(std::string_view* bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(bytes);
    value |= uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80U) == 0) {
      return value;
    }
  }
}

// The fields of one protobuf message by number: numbers as their bits, the rest as bytes.
struct Fields {
  std::map<uint64_t, uint64_t> numbers;
  std::map<uint64_t, std::string> bytes;
};

Fields fields_of(std::string_view message) {
  Fields fields;
  while (!message.empty()) {
    const uint64_t key = take_varint(&message);
    switch (key & 7U) {
      case 0:
        fields.numbers[key >> 3] = take_varint(&message);
        break;
      case 1:
        fields.numbers[key >> 3] = take<uint64_t>(&message);
        break;
      case 5:
        fields.numbers[key >> 3] = take<uint32_t>(&message);
        break;
      case 2: {
        const uint64_t length = take_varint(&message);
        fields.bytes[key >> 3] = message.substr(0, length);
        message.remove_prefix(length);
        break;
      }
      default:
        throw std::runtime_error("unknown wire type");
    }
  }
  return fields;
}

class EventWriterTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

void expect_scalar(const std::string& record, const std::string& tag, uint64_t step, float value) {
  const Fields event = fields_of(record);
  EXPECT_EQ(event.numbers.at(2), step);
  const Fields point = fields_of(fields_of(event.bytes.at(5)).bytes.at(1));
  EXPECT_EQ(point.bytes.at(1), tag);
  float stored = 0;
  const auto bits = static_cast<uint32_t>(point.numbers.at(2));
  std::memcpy(&stored, &bits, sizeof(stored));
  EXPECT_EQ(stored, value);
}

TEST_F(EventWriterTest, WritesWhatTensorBoardReads) {
  EventWriter writer(folder_ / "new", 7);
  EXPECT_EQ(writer.path().filename().string().find("events.out.tfevents."), 0U);
  writer.scalar("train/loss", 7, 4.125);
  writer.scalar("lr", 300000, 1e-3);

  const std::vector<std::string> records = records_of(writer.path());
  ASSERT_EQ(records.size(), 4U);
  const Fields version = fields_of(records[0]);
  EXPECT_EQ(version.bytes.at(3), "brain.Event:2");
  double wall_time = 0;
  std::memcpy(&wall_time, &version.numbers.at(1), sizeof(wall_time));
  EXPECT_GT(wall_time, 1.7e9);
  EXPECT_LT(wall_time, 4e9);
  const Fields start = fields_of(records[1]);
  EXPECT_EQ(start.numbers.at(2), 7U);
  EXPECT_EQ(fields_of(start.bytes.at(7)).numbers.at(1), 1U);
  expect_scalar(records[2], "train/loss", 7, 4.125F);
  expect_scalar(records[3], "lr", 300000, 1e-3F);
}

TEST_F(EventWriterTest, GivesEachWriterAFileOfItsOwn) {
  const EventWriter first(folder_.path(), 0);
  const EventWriter second(folder_.path(), 0);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(EventWriterTest, RefusesAFolderThatCannotBe) {
  std::ofstream(folder_ / "file") << "not a folder";
  EXPECT_THROW(EventWriter(folder_ / "file", 0), IoError);
}

// A full disk must neither end the run nor leave half a record before the ones that follow.
TEST_F(EventWriterTest, GoesOnAfterTheDiskWasFull) {
  EventWriter writer(folder_.path(), 0);
  writer.scalar("train/loss", 1, 1.0);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit full = before;
  full.rlim_cur = std::filesystem::file_size(writer.path()) + 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  writer.scalar("train/loss", 2, 2.0);
  writer.scalar("train/loss", 3, 3.0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  writer.scalar("train/loss", 4, 4.0);

  const std::vector<std::string> records = records_of(writer.path());
  ASSERT_EQ(records.size(), 4U);
  expect_scalar(records[2], "train/loss", 1, 1.0F);
  expect_scalar(records[3], "train/loss", 4, 4.0F);
}

}  // namespace
}  // namespace lockstep
