#include "trainer/metrics_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "core/base/error.h"

namespace lockstep {
namespace {

class MetricsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("metrics_{}", ::getpid());
    std::filesystem::create_directories(directory_);
    path_ = directory_ / "metrics.jsonl";
    MetricsFile file(path_, 0);
    for (const char* line :
         {R"({"step": 1, "loss": 4})", R"({"step": 2, "loss": 3})", R"({"step": 3, "loss": 2})"}) {
      file.append(line);
    }
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  std::filesystem::path path_;
};

TEST_F(MetricsFileTest, ARunThatContinuesDropsTheStepsItRepeats) {
  MetricsFile file(path_, 2);
  file.append(R"({"step": 3, "loss": 1})");
  EXPECT_EQ(read_file(path_),
            "{\"step\": 1, \"loss\": 4}\n{\"step\": 2, \"loss\": 3}\n{\"step\": 3, \"loss\": 1}\n");
}

TEST_F(MetricsFileTest, ALineThatACrashCutIsDropped) {
  std::string content = read_file(path_);
  content.resize(content.size() - 5);
  replace_file(path_, content);
  MetricsFile file(path_, 3);
  EXPECT_EQ(read_file(path_), "{\"step\": 1, \"loss\": 4}\n{\"step\": 2, \"loss\": 3}\n");
}

TEST_F(MetricsFileTest, ALineThatFindsNoRoomLeavesNoPart) {
  const std::string before = read_file(path_);
  MetricsFile file(path_, 3);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full = {before.size() + 5, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  file.append(R"({"step": 4, "loss": 1})");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path_), before);
  file.append(R"({"step": 5, "loss": 1})");
  EXPECT_EQ(read_file(path_), before + "{\"step\": 5, \"loss\": 1}\n");
}

TEST_F(MetricsFileTest, AFileThatWasDeletedBeginsAnew) {
  MetricsFile file(path_, 3);
  std::filesystem::remove_all(directory_);
  file.append(R"({"step": 4, "loss": 1})");  // nowhere
  std::filesystem::create_directories(directory_);
  file.append(R"({"step": 5, "loss": 1})");
  file.append(R"({"step": 6, "loss": 1})");
  EXPECT_EQ(read_file(path_), "{\"step\": 5, \"loss\": 1}\n{\"step\": 6, \"loss\": 1}\n");
}

TEST_F(MetricsFileTest, AnotherRunsFileIsLeftAlone) {
  MetricsFile file(path_, 3);
  std::filesystem::remove(path_);
  MetricsFile other(path_, 0);
  file.append(R"({"step": 4, "loss": 1})");
  EXPECT_EQ(read_file(path_), "");
  other.append(R"({"step": 1, "loss": 4})");
  EXPECT_EQ(read_file(path_), "{\"step\": 1, \"loss\": 4}\n");
}

TEST_F(MetricsFileTest, ANewRunStartsEmpty) {
  MetricsFile file(path_, 0);
  EXPECT_EQ(read_file(path_), "");
}

}  // namespace
}  // namespace lockstep
