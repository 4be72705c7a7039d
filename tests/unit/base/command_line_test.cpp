#include "core/base/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <locale>
#include <new>

#include "core/base/build_id.h"
#include "core/base/error.h"
#include "core/base/run_main.h"
#include "support/error_of.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The options of an imagined program.
struct Program {
  int64_t layers = 4;
  double rate = 1e-3;
  std::string device = "cpu";
  std::string prompt = "\n";
  std::string out;
  std::vector<std::string> hosts = {"a", "b"};
  bool overlap = true;
  bool verbose = false;
  CommandLine cli{"program", "Tests the command line."};

  Program() {
    cli.option("--n-layer", &layers, "Blocks").at_least(1).at_most(100).group("Model");
    cli.option("-r,--learning-rate", &rate, "Peak rate").greater_than(0).less_than(1);
    cli.option("--device", &device, "Where to run").one_of({"cpu", "cuda"});
    cli.option("--prompt", &prompt, "Text to go on from");
    cli.option("--hosts", &hosts, "Names of hosts").value_name("NAME,NAME");
    cli.flag("--overlap", &overlap, "Communicate under backward");
    cli.flag("-v,--verbose", &verbose, "Say more");
    cli.positional("OUT", &out, "Folder");
    cli.config_file();
  }

  bool parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "program");
    return cli.parse(static_cast<int>(arguments.size()), arguments.data());
  }

  std::string error(const std::vector<const char*>& arguments) {
    try {
      parse(arguments);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "no error";
  }
};

std::string error_of(const std::vector<const char*>& arguments) {
  return Program().error(arguments);
}

/// A configuration file that goes with the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "command_line_test_" + std::to_string(::getpid()) + ".toml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  ConfigFile(ConfigFile&&) = delete;
  ConfigFile& operator=(ConfigFile&&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

std::string config_error(const std::string& text) {
  const ConfigFile file(text);
  return error_of({"--config", file.path()});
}

TEST(CommandLine, ReadsEveryKindOfOption) {
  Program p;
  ASSERT_TRUE(p.parse({"--n-layer", "12", "-r", "6e-4", "--device=cuda", "--prompt", "-0.5 --x",
                       "--hosts", "x,y", "--hosts=z", "--no-overlap", "--verbose", "folder"}));
  EXPECT_EQ(p.layers, 12);
  EXPECT_EQ(p.rate, 6e-4);
  EXPECT_EQ(p.device, "cuda");
  EXPECT_EQ(p.prompt, "-0.5 --x");
  EXPECT_THAT(p.hosts, ElementsAre("x", "y", "z"));
  EXPECT_FALSE(p.overlap);
  EXPECT_TRUE(p.verbose);
  EXPECT_EQ(p.out, "folder");
  EXPECT_TRUE(p.cli.given("--n-layer"));
  EXPECT_TRUE(p.cli.given("--overlap"));
}

TEST(CommandLine, LeavesDefaultsAlone) {
  Program p;
  ASSERT_TRUE(p.parse({}));
  EXPECT_EQ(p.layers, 4);
  EXPECT_EQ(p.prompt, "\n");
  EXPECT_TRUE(p.overlap);
  EXPECT_THAT(p.hosts, ElementsAre("a", "b"));
  EXPECT_FALSE(p.cli.given("--n-layer"));
}

TEST(CommandLine, TakesAnEmptyValueAsOne) {
  Program p;
  ASSERT_TRUE(p.parse({"--prompt=", "--n-layer", "3"}));
  EXPECT_EQ(p.prompt, "");
  EXPECT_EQ(p.layers, 3);
  Program q;
  ASSERT_TRUE(q.parse({"--prompt", "", "--n-layer=3"}));
  EXPECT_EQ(q.prompt, "");
}

TEST(CommandLine, NamesTheNearestFlag) {
  EXPECT_EQ(error_of({"--n-layers", "4"}),
            "unknown flag --n-layers (did you mean --n-layer?); see --help");
  EXPECT_EQ(error_of({"--n_layer=4"}),
            "unknown flag --n_layer (did you mean --n-layer?); see --help");
  EXPECT_EQ(error_of({"--completely-different"}),
            "unknown flag --completely-different; see --help");
  EXPECT_EQ(error_of({"folder", "more"}), "unexpected word 'more'; see --help");
}

TEST(CommandLine, SaysWhatIsWrongWithAValue) {
  EXPECT_EQ(error_of({"--n-layer", "four"}), "--n-layer expects a whole number, not 'four'");
  EXPECT_EQ(error_of({"--n-layer", "4.0"}), "--n-layer expects a whole number, not '4.0'");
  EXPECT_EQ(error_of({"--n-layer", "99999999999999999999"}),
            "--n-layer expects a whole number, not '99999999999999999999'");
  EXPECT_EQ(error_of({"--n-layer", "0"}), "--n-layer is 0; it must be at least 1 and at most 100");
  EXPECT_EQ(error_of({"--n-layer=-3"}), "--n-layer is -3; it must be at least 1 and at most 100");
  EXPECT_EQ(error_of({"--n-layer=101"}), "--n-layer is 101; it must be at least 1 and at most 100");
  EXPECT_EQ(error_of({"--learning-rate", "0"}),
            "--learning-rate is 0; it must be greater than 0 and less than 1");
  EXPECT_EQ(error_of({"--learning-rate", "1"}),
            "--learning-rate is 1; it must be greater than 0 and less than 1");
  for (const char* text : {"", "nan", "inf", "0,5", "0.5x", " 0.5", "0x1p-3"}) {
    EXPECT_EQ(error_of({"--learning-rate", text}),
              fmt::format("--learning-rate expects a number like 0.001 or 1e-3, not '{}'", text));
  }
  EXPECT_EQ(error_of({"--device", "cude"}),
            "--device is 'cude'; it must be one of cpu, cuda (did you mean cuda?)");
  EXPECT_EQ(error_of({"--overlap=maybe"}), "--overlap expects true or false, not 'maybe'");
  EXPECT_EQ(error_of({"--n-layer"}), "--n-layer needs a value; see --help");
}

TEST(CommandLine, RefusesAFlagGivenTwice) {
  EXPECT_EQ(error_of({"--n-layer", "1", "--n-layer", "2"}),
            "--n-layer is given 2 times; give it once");
  EXPECT_EQ(error_of({"--overlap", "--no-overlap"}), "--overlap is given 2 times; give it once");
  EXPECT_EQ(error_of({"--config", "x", "--config", "y"}),
            "--config is given 2 times; give it once");
}

TEST(CommandLine, AsksForWhatIsRequired) {
  std::string text;
  CommandLine cli("program", "");
  cli.option("--text", &text, "File").required();
  const char* argv[] = {"program"};
  EXPECT_THROW(
      {
        try {
          cli.parse(1, argv);
        } catch (const UsageError& e) {
          EXPECT_STREQ(e.what(), "--text is required; see --help");
          throw;
        }
      },
      UsageError);
}

TEST(CommandLine, TakesNoEmptyTextForWhatIsRequired) {
  std::string text;
  CommandLine cli("program", "");
  cli.option("--text", &text, "File").required();
  const char* argv[] = {"program", "--text="};
  EXPECT_EQ(lockstep::error_of<UsageError>([&] { cli.parse(2, argv); }),
            "--text is empty; see --help for what to give");
}

TEST(CommandLine, ShowsGroupsTypesAndDefaults) {
  Program p;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(p.parse({"--help"}));
  const std::string help = testing::internal::GetCapturedStdout();
  for (const char* part :
       {"Model:", "--n-layer INT [4]", "--learning-rate NUMBER [0.001]", "{cpu,cuda} [cpu]",
        "--config FILE", "--prompt TEXT [\\n]", "--[no-]overlap [on]", "-v, --[no-]verbose [off]",
        "--hosts NAME,NAME [a,b]", "Usage: program [OUT] [OPTIONS]\n"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
}

TEST(CommandLine, ShowsTheBuild) {
  Program p;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(p.parse({"--version"}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), std::string(build_id()) + "\n");
}

TEST(CommandLine, ReadsAFileAndLetsFlagsWin) {
  const ConfigFile file(
      "# a run\n"
      "n_layer = 6  # blocks\n"
      "[train]\n"
      "learning-rate = 0.01\n"
      "overlap = false\n"
      "prompt = \"a, # b\"\n"
      "hosts = [\"p\", \"q\"]\n");
  Program p;
  ASSERT_TRUE(p.parse({"--config", file.path(), "--learning-rate", "0.02"}));
  EXPECT_EQ(p.layers, 6);
  EXPECT_EQ(p.rate, 0.02);
  EXPECT_FALSE(p.overlap);
  EXPECT_EQ(p.prompt, "a, # b");
  EXPECT_THAT(p.hosts, ElementsAre("p", "q"));
  EXPECT_TRUE(p.cli.given("--n-layer"));
}

TEST(CommandLine, NamesFileKeyAndNearestKey) {
  EXPECT_THAT(config_error("n_layers = 4\n"),
              HasSubstr(".toml:1: unknown key 'n_layers' (did you mean n-layer?); see --help"));
  EXPECT_THAT(config_error("help = true\n"), HasSubstr("unknown key 'help'"));
  EXPECT_THAT(config_error("config = 'x'\n"), HasSubstr("unknown key 'config'"));
  EXPECT_THAT(config_error("\nn-layer = 4.5\n"),
              HasSubstr(".toml:2: n-layer expects a whole number, not '4.5'"));
  EXPECT_THAT(config_error("n-layer = 0\n"),
              HasSubstr(".toml:1: n-layer is 0; it must be at least"));
  EXPECT_THAT(config_error("n-layer = 1\ndevice = 'cpu'\nn_layer = 2\n"),
              HasSubstr("n_layer is given twice"));
  EXPECT_THAT(config_error("n-layer = 1\nn-layer = 2\n"), HasSubstr(".toml:2: n-layer is given"));
  EXPECT_THAT(config_error("n-layer = [1, 2]\n"),
              HasSubstr(".toml:1: n-layer is a list of 2 values; give one"));
  EXPECT_EQ(error_of({"--config", "/nonexistent/x.toml"}),
            "--config: cannot read /nonexistent/x.toml");
  EXPECT_EQ(error_of({"--config", "/"}), "--config: cannot read /");  // not an empty file
}

TEST(CommandLine, RefusesAValueOfTheWrongTypeInAFile) {
  EXPECT_THAT(config_error("n-layer = \"4\"\n"),
              HasSubstr(".toml:1: n-layer expects a whole number, not text: write '4' without"));
  EXPECT_THAT(config_error("overlap = 'false'\n"),
              HasSubstr(".toml:1: overlap expects true or false, not text: write 'false' without"));
  EXPECT_THAT(config_error("learning-rate = '0.1'\n"), HasSubstr("expects a number like"));
  EXPECT_THAT(config_error("device = cpu\n"),
              HasSubstr(".toml:1: device takes text; put cpu between quotes"));
  EXPECT_THAT(config_error("hosts = [a, b]\n"), HasSubstr("put a, b between quotes"));
  EXPECT_THAT(config_error("hosts = [\"a\", b]\n"), HasSubstr("put a, b between quotes"));
}

/// A locale that writes one half as 0,5 and a thousand as 1.000.
class DecimalComma : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(CommandLine, ReadsADecimalPointUnderADecimalCommaLocale) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new DecimalComma));
  std::setlocale(LC_NUMERIC, "de_DE.UTF-8");  // where it is installed
  Program p;
  const ConfigFile file("n-layer = 16\n");
  const bool parsed = p.parse({"--learning-rate", "0.5", "--config", file.path()});
  Program q;
  testing::internal::CaptureStdout();
  q.parse({"--help"});
  const std::string help = testing::internal::GetCapturedStdout();
  std::setlocale(LC_NUMERIC, "C");
  std::locale::global(before);
  EXPECT_TRUE(parsed);
  EXPECT_EQ(p.rate, 0.5);
  EXPECT_EQ(p.layers, 16);
  EXPECT_THAT(help, HasSubstr("[0.001]"));
}

int run(int (*body)(int, char**), std::string* printed) {
  testing::internal::CaptureStderr();
  const int code = run_main("program", body, 0, nullptr);
  *printed = testing::internal::GetCapturedStderr();
  return code;
}

TEST(RunMain, TurnsErrorsIntoOneLineAndACode) {
  std::string printed;
  EXPECT_EQ(run([](int, char**) { return 5; }, &printed), 5);
  EXPECT_EQ(printed, "");
  EXPECT_EQ(run([](int, char**) -> int { throw CorruptError("bad\nshard {}", 7); }, &printed), 4);
  EXPECT_EQ(printed, "program: bad shard 7\n");
  EXPECT_EQ(run([](int, char**) -> int { throw std::bad_alloc(); }, &printed), 7);
  EXPECT_EQ(printed, "program: out of memory\n");
  EXPECT_EQ(run([](int, char**) -> int { throw std::runtime_error("odd"); }, &printed), 1);
  EXPECT_EQ(printed, "program: odd\n");
  EXPECT_EQ(
      run([](int, char**) -> int { throw AbortedError(ExitCode::kPeerLost, "told"); }, &printed),
      5);
  EXPECT_EQ(printed, "");
}

TEST(RunMain, ReportsOutputThatCannotBeWritten) {
  EXPECT_EXIT(
      {
        ASSERT_NE(std::freopen("/dev/full", "w", stdout), nullptr);
        std::exit(run_main(
            "program", [](int, char**) { return std::puts("text") < 0 ? 1 : 0; }, 0, nullptr));
      },
      testing::ExitedWithCode(3), "program: cannot write standard output");
}

}  // namespace
}  // namespace lockstep
