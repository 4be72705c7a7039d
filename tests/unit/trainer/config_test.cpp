#include "trainer/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

TrainConfig parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "trainer");
  TrainConfig config;
  CommandLine cli("trainer", "test");
  declare_options(cli, config);
  cli.parse(static_cast<int>(arguments.size()), arguments.data());
  config.validate();
  return config;
}

std::string refusal(const std::vector<const char*>& arguments) {
  try {
    parse(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

class ConfigFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / fmt::format("config_{}.toml", ::getpid());
  }
  void TearDown() override { std::filesystem::remove(path_); }
  const char* write(const std::string& text) {
    std::ofstream(path_) << text;
    text_ = path_.string();
    return text_.c_str();
  }

 private:
  std::filesystem::path path_;
  std::string text_;
};

TEST(Config, DefaultsAreTheSmallCharacterModel) {
  const TrainConfig config = parse({});
  EXPECT_EQ(config.model(65).n_embd, 128);
  EXPECT_EQ(config.last_step(), 2000);
  EXPECT_EQ(config.lr_schedule().lr_decay_iters, 2000);
  EXPECT_TRUE(config.overlap);
}

TEST(Config, FlagsReachWhatTheyName) {
  const TrainConfig config = parse({"--n-layer",
                                    "2",
                                    "--gelu",
                                    "erf",
                                    "--max-iters",
                                    "50",
                                    "--stop-at",
                                    "20",
                                    "--grad-clip",
                                    "0",
                                    "--no-overlap",
                                    "--transport",
                                    "socket",
                                    "--peer-timeout",
                                    "2.5",
                                    "--collective-timeout",
                                    "7",
                                    "--bucket-mb",
                                    "0.5",
                                    "--lr-decay-iters",
                                    "400"});
  EXPECT_EQ(config.model(65).n_layer, 2);
  EXPECT_EQ(config.model(65).gelu, Gelu::kErf);
  EXPECT_EQ(config.last_step(), 20);
  EXPECT_EQ(config.adamw().grad_clip, 0);
  EXPECT_FALSE(config.overlap);
  EXPECT_EQ(config.communicator(64).transport, TransportChoice::kSocket);
  EXPECT_EQ(config.control().peer_timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(config.communicator(64).collective_timeout, std::chrono::seconds(7));
  EXPECT_EQ(config.communicator(64).window_elements, 64);
  EXPECT_EQ(config.bucket_elements(), 131072);
  EXPECT_EQ(config.lr_schedule().lr_decay_iters, 400);
}

TEST(Config, TransportsAreNamedByTheirWords) {
  EXPECT_EQ(parse({"--transport", "nccl"}).communicator(64).transport, TransportChoice::kNccl);
  EXPECT_EQ(parse({}).communicator(64).transport, TransportChoice::kAuto);
}

TEST(Config, SilenceIsShorterOnGpusUnlessALimitIsGiven) {
  const TrainConfig config = parse({});
  EXPECT_EQ(config.peer_limit(true), std::chrono::milliseconds(3500));
  EXPECT_EQ(config.peer_limit(false), std::chrono::seconds(10));
  EXPECT_EQ(config.control().peer_timeout, std::chrono::seconds(10));
  const TrainConfig given = parse({"--peer-timeout", "7"});
  EXPECT_EQ(given.peer_limit(true), std::chrono::seconds(7));
  EXPECT_EQ(given.peer_limit(false), std::chrono::seconds(7));
  EXPECT_THAT(refusal({"--peer-timeout", "0.5"}), HasSubstr("--peer-timeout 0.5"));
}

TEST(Config, RefusesWhatIsNoOptionOrNoValueOfIt) {
  EXPECT_THAT(refusal({"--n-layers", "2"}), HasSubstr("--n-layer"));
  EXPECT_THAT(refusal({"--n-layer", "two"}), HasSubstr("--n-layer"));
  EXPECT_THAT(refusal({"--n-layer", "0"}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({"--n-embd", "-128"}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({"--learning-rate", "0"}), HasSubstr("at least 1e-30"));
  EXPECT_THAT(refusal({"--learning-rate", "0,001"}), HasSubstr("--learning-rate"));
  EXPECT_THAT(refusal({"--beta1", "1"}), HasSubstr("at most 0.99999"));
  EXPECT_THAT(refusal({"--beta2", "0.99999998"}), HasSubstr("at most 0.99999"));
  EXPECT_EQ(parse({"--beta2", "0.99999"}).beta2, 0.99999);
  EXPECT_THAT(refusal({"--learning-rate", "1e-46"}), HasSubstr("at least 1e-30"));
  EXPECT_THAT(refusal({"--precision", "fp64"}), HasSubstr("fp32"));
  EXPECT_THAT(refusal({"--device", "gpu"}), HasSubstr("cuda"));
}

TEST(Config, BoundsEveryNumberThatIsMultiplied) {
  const std::map<std::string, std::string> options = TrainConfig().options();
  int bounded = 0;
  for (const auto& [name, value] : options) {
    const bool whole = value.find_first_not_of("0123456789") == std::string::npos;
    if (!whole || value.empty() || name == "seed" || name == "grad-clip") {
      continue;
    }
    const std::string flag = "--" + name;
    EXPECT_THAT(refusal({flag.c_str(), "9223372036854775807"}), HasSubstr("and at most ")) << flag;
    ++bounded;
  }
  EXPECT_EQ(bounded, 22);
  EXPECT_THAT(refusal({"--bucket-mb", "1e300"}), HasSubstr("at most"));
}

TEST(Config, RefusesConflicts) {
  EXPECT_EQ(refusal({"--out-dir", ""}), "--out-dir is empty; give a folder");
  EXPECT_EQ(refusal({"--data-dir="}), "--data-dir is empty; give a folder");
  EXPECT_THAT(refusal({"--min-lr", "0.1"}), HasSubstr("--min-lr 0.1 is above"));
  EXPECT_THAT(refusal({"--stop-at", "3000"}), HasSubstr("--max-iters 2000"));
  EXPECT_THAT(refusal({"--lr-decay-iters", "50"}), HasSubstr("--warmup-iters 100"));
  EXPECT_THROW(parse({"--n-embd", "130"}).model(65), UsageError);
}

TEST_F(ConfigFile, IsReadAndFlagsWinOverIt) {
  const char* path = write("n-layer = 3\n[Optimisation]\nmax-iters = 70\noverlap = false\n");
  const TrainConfig config = parse({"--config", path, "--max-iters", "80"});
  EXPECT_EQ(config.n_layer, 3);
  EXPECT_EQ(config.max_iters, 80);
  EXPECT_FALSE(config.overlap);
}

TEST_F(ConfigFile, UnknownKeyAndWrongTypeAreRefused) {
  EXPECT_THAT(refusal({"--config", write("n-layr = 3\n")}), HasSubstr("n-layer"));
  EXPECT_THAT(refusal({"--config", write("n-layer = \"many\"\n")}), HasSubstr("n-layer"));
  EXPECT_THAT(refusal({"--config", "/nowhere/x.toml"}), HasSubstr("/nowhere/x.toml"));
}

TEST(Config, TextFormHasEveryOptionByItsName) {
  const auto options = parse({"--seed", "7", "--no-overlap"}).options();
  EXPECT_EQ(options.at("seed"), "7");
  EXPECT_EQ(options.at("overlap"), "false");
  EXPECT_EQ(options.at("learning-rate"), "0.001");
  EXPECT_EQ(options.count("n-layer"), 1U);
}

}  // namespace
}  // namespace lockstep
