#include "core/base/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfigFileText : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::vector<ConfigEntry> read(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return read_config_file(path_);
  }

  /// The error without the path in front.
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const UsageError& error) {
      const std::string what = error.what();
      return what.starts_with(path_) ? what.substr(path_.size()) : what;
    }
    return "accepted";
  }

 private:
  std::string path_ =
      testing::TempDir() + "config_file_test_" + std::to_string(::getpid()) + ".toml";
};

TEST_F(ConfigFileText, GivesKeysValuesAndLines) {
  const auto entries = read(
      "# a run\r\n"
      "[Model] # of text\r\n"
      "n_layer=6# blocks\n"
      "\t rate = -1e-3 \n"
      "prompt = 'a, \\n # \"b\"'\n"
      "path = \"it's\" # quoted\n"
      "empty = ''\n"
      "hosts = [ \"p\", 'q,r', ]\n"
      "none = []");
  ASSERT_EQ(entries.size(), 7U);
  EXPECT_EQ(entries[0].key, "n_layer");
  EXPECT_THAT(entries[0].values, ElementsAre("6"));
  EXPECT_FALSE(entries[0].quoted);
  EXPECT_EQ(entries[0].line, 3);
  EXPECT_THAT(entries[1].values, ElementsAre("-1e-3"));
  EXPECT_THAT(entries[2].values, ElementsAre("a, \\n # \"b\""));
  EXPECT_TRUE(entries[2].quoted);
  EXPECT_THAT(entries[3].values, ElementsAre("it's"));
  EXPECT_THAT(entries[4].values, ElementsAre(""));
  EXPECT_TRUE(entries[4].quoted);
  EXPECT_THAT(entries[5].values, ElementsAre("p", "q,r"));
  EXPECT_TRUE(entries[5].quoted);
  EXPECT_EQ(entries[5].line, 8);
  EXPECT_THAT(entries[6].values, IsEmpty());
}

TEST_F(ConfigFileText, PassesOverAByteOrderMark) {
  const auto entries = read("\xEF\xBB\xBFseed = 7\n");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].key, "seed");
  EXPECT_THAT(read(""), IsEmpty());
}

TEST_F(ConfigFileText, SaysWhatIsWrongInWhichLine) {
  EXPECT_EQ(refusal("\nprompt = \"a b\n"),
            ":2: the text that begins with \" has no closing \" on this line");
  EXPECT_EQ(refusal("prompt = 'a\"\n"),
            ":1: the text that begins with ' has no closing ' on this line");
  EXPECT_THAT(refusal("prompt = \"a\\nb\"\n"), HasSubstr(":1: escapes like \\n are not read"));
  EXPECT_THAT(refusal("prompt = \"a\\\"\n"), HasSubstr(":1: escapes like \\\""));
  EXPECT_EQ(refusal("seed 4\n"), ":1: 'seed' has no = behind it; a line is: seed = value");
  EXPECT_EQ(refusal("seed =  # none\n"), ":1: 'seed' has no value");
  EXPECT_THAT(refusal("prompt = a b\n"), HasSubstr(":1: 'prompt' has more than one value; text"));
  EXPECT_THAT(refusal("a = 1, 2\n"), HasSubstr("'a' has more than one value"));
  EXPECT_THAT(refusal("a = \"\"\"b\"\"\"\n"), HasSubstr("'a' has more than one value"));
  EXPECT_EQ(refusal("a = ]\n"), ":1: a value is missing");
  EXPECT_EQ(refusal("a = [\"b\", \n\"c\"]\n"), ":1: the list of 'a' has no closing ] on this line");
  EXPECT_EQ(refusal("a = [\"b\" \"c\"]\n"), ":1: the elements of 'a' need commas between them");
  EXPECT_EQ(refusal("a = [,]\n"), ":1: a value is missing");
  EXPECT_THAT(refusal("a.b = 1\n"), HasSubstr(":1: 'a.b' is no key; a line is: key = value"));
  EXPECT_THAT(refusal("= 1\n"), HasSubstr(":1: '' is no key"));
  for (const char* section : {"[a\n", "[]\n", "[[a]]\n", "[a] b = 1\n"}) {
    EXPECT_EQ(refusal(section), ":1: a section is written [name], alone on its line");
  }
}

TEST_F(ConfigFileText, RefusesWhatIsNoText) {
  EXPECT_THAT(refusal(std::string("\xFF\xFEs\0e\0", 6)), HasSubstr("is no text file"));
  EXPECT_THAT(refusal(std::string((1 << 20) + 1, '#')), HasSubstr("is no text file"));
  EXPECT_THROW(read_config_file("/"), UsageError);
  EXPECT_THROW(read_config_file("/dev/zero"), UsageError);
  EXPECT_THROW(read_config_file("/nonexistent/x.toml"), UsageError);
}

}  // namespace
}  // namespace lockstep
