// Manifests whose checksums are right and whose content is not: what a reader believes is bounded
// by the files that are there.
#include <checkpoint.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "core/base/record_file.h"
#include "unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

class HostileManifest : public CheckpointTest {
 protected:
  HostileManifest()
      : place_(
            CheckpointStore(folder() / "run", 0).save(small_state(1), small_tensors(1).named())) {
    EXPECT_TRUE(
        manifest_.ParseFromString(RecordReader(place_ / "manifest.rec").read(kMaxRecordBytes)));
  }

  void write_record(const std::string& record) {
    std::filesystem::remove(place_ / "manifest.rec");
    RecordWriter writer(place_ / "manifest.rec");
    writer.append(std::as_bytes(std::span(record)));
    writer.flush();
  }

  /// The message with which a changed manifest is refused.
  std::string refusal(const std::function<void(checkpoint::Manifest&)>& change) {
    checkpoint::Manifest changed = manifest_;
    change(changed);
    write_record(changed.SerializeAsString());
    try {
      const CheckpointReader reader(place_);
      reader.verify();
      return {};
    } catch (const CorruptError& error) {
      return error.what();
    }
  }

  checkpoint::Tensor* first(checkpoint::Manifest& manifest) { return manifest.mutable_tensors(0); }

  std::filesystem::path place_;
  checkpoint::Manifest manifest_;
};

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST_F(HostileManifest, IsAcceptedUnchanged) {
  EXPECT_EQ(refusal([](auto& /*manifest*/) {}), "");
}

TEST_F(HostileManifest, TensorsLargerThanTheFileAreRefused) {
  const std::vector<std::vector<int64_t>> shapes = {
      {kHuge},          {int64_t{1} << 32, int64_t{1} << 32},
      {-1, -35},        {int64_t{1} << 62, 4},
      {35, 1, 1, 1000}, {-35},
      {0, kHuge, 2}};
  for (const auto& shape : shapes) {
    EXPECT_THAT(
        refusal([&](auto& m) { first(m)->mutable_shape()->Assign(shape.begin(), shape.end()); }),
        HasSubstr("parameters/wte"));
  }
}

TEST_F(HostileManifest, ManyTensorsThatTogetherExceedTheFileAreRefused) {
  EXPECT_THAT(refusal([&](auto& m) {
                for (int i = 0; i < 100; ++i) {
                  checkpoint::Tensor* tensor = m.add_tensors();
                  *tensor = m.tensors(2);
                  tensor->set_name("copy " + std::to_string(i));
                }
              }),
              HasSubstr("does not fit"));
}

TEST_F(HostileManifest, ShapesOfAnotherSizeAreRefused) {
  EXPECT_THAT(refusal([&](auto& m) { first(m)->set_shape(0, 6); }), HasSubstr("parameters/wte"));
  EXPECT_THAT(refusal([&](auto& m) { first(m)->clear_shape(); }), HasSubstr("parameters/wte"));
}

TEST_F(HostileManifest, NamesAreBounded) {
  EXPECT_THAT(refusal([&](auto& m) { first(m)->set_name(std::string(1025, 'x')); }),
              HasSubstr("name of 1025 bytes"));
  EXPECT_THAT(refusal([&](auto& m) { first(m)->set_name(""); }), HasSubstr("name of 0 bytes"));
  EXPECT_THAT(refusal([&](auto& m) { first(m)->set_name(m.tensors(2).name()); }),
              HasSubstr("two tensors named"));
}

TEST_F(HostileManifest, CountsAreBounded) {
  EXPECT_THAT(refusal([&](auto& m) {
                for (int i = 0; i < 70000; ++i) {
                  m.add_tensors()->set_name(std::to_string(i));
                }
              }),
              HasSubstr("70003 tensors"));
  EXPECT_THAT(refusal([&](auto& m) {
                for (int i = 0; i < 7; ++i) {
                  first(m)->add_shape(1);
                }
              }),
              HasSubstr("9 dimensions"));
  EXPECT_THAT(refusal([&](auto& m) { first(m)->add_chunk_crc32c(0); }),
              HasSubstr("2 chunk checksums for 1 chunks"));
}

TEST_F(HostileManifest, ChunksAndOffsetsAreBounded) {
  for (const int64_t elements : {int64_t{0}, int64_t{-1}, kHuge, (int64_t{16} << 20) + 1}) {
    EXPECT_NE(refusal([&](auto& m) { m.set_chunk_elements(elements); }), "");
  }
  for (const int64_t offset : {int64_t{-1}, int64_t{0}, int64_t{1}, kHuge, int64_t{100000}}) {
    EXPECT_NE(refusal([&](auto& m) { first(m)->set_offset(offset); }), "");
  }
  for (const int64_t bytes : {int64_t{-1}, int64_t{0}, kHuge}) {
    EXPECT_NE(refusal([&](auto& m) { m.set_tensor_file_bytes(bytes); }), "");
  }
}

TEST_F(HostileManifest, ModelsThatCannotBeAreRefused) {
  const auto with = [&](const std::function<void(checkpoint::Model&)>& change) {
    return refusal([&](auto& m) { change(*m.mutable_state()->mutable_model()); });
  };
  EXPECT_THAT(with([](auto& model) { model.set_n_head(0); }), HasSubstr("--n-head 0"));
  EXPECT_THAT(with([](auto& model) { model.set_n_head(3); }), HasSubstr("not divisible"));
  EXPECT_THAT(with([](auto& model) { model.set_n_layer(kHuge); }), HasSubstr("--n-layer"));
  EXPECT_THAT(with([](auto& model) { model.set_n_embd(-128); }), HasSubstr("--n-embd -128"));
  EXPECT_THAT(with([](auto& model) { model.set_block_size(kHuge); }), HasSubstr("--block-size"));
  EXPECT_THAT(with([](auto& model) { model.set_vocab_size(0); }), HasSubstr("0 symbols"));
  EXPECT_THAT(with([](auto& model) { model.clear_gelu(); }), HasSubstr("unknown GELU"));
}

TEST_F(HostileManifest, BytesBetweenTensorsAreRefused) {
  EXPECT_THAT(refusal([&](auto& m) { m.mutable_tensors()->DeleteSubrange(1, 1); }),
              HasSubstr("tensors"));
}

TEST_F(HostileManifest, OtherVersionsAreToldApartFromDamage) {
  EXPECT_THAT(refusal([&](auto& m) { m.set_format_version(2); }),
              HasSubstr("checkpoint format 2; this build reads format 1"));
  EXPECT_THAT(refusal([&](auto& m) { first(m)->set_data_type(checkpoint::DATA_TYPE_UNSPECIFIED); }),
              HasSubstr("unknown data type"));
}

TEST_F(HostileManifest, BytesThatAreNoManifestAreRefused) {
  for (const std::string& record :
       {std::string(), std::string("hello"), std::string(1000, '\xff'), std::string(1000, '\0')}) {
    write_record(record);
    EXPECT_THROW(CheckpointReader{place_}, CorruptError);
  }
}

TEST_F(HostileManifest, ARecordLengthIsNotBelieved) {
  for (const uint64_t length : {uint64_t{1} << 62, ~uint64_t{0}, uint64_t{1} << 20}) {
    const uint32_t crc = masked_crc32c(crc32c(std::as_bytes(std::span(&length, 1))));
    std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
    file.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
    file.append(100, 'x');
    write_bytes(place_ / "manifest.rec", file);
    EXPECT_THROW(CheckpointReader{place_}, CorruptError);
  }
}

}  // namespace
}  // namespace lockstep
