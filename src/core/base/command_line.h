#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The flags of one program: parsing, --help, a configuration file and errors that name the nearest
/// flag. The only user of CLI11. Every option is a long flag `--like-this VALUE` (or =VALUE), given
/// at most once. A flag on the command line wins over the file.
///
///   CommandLine cli("sample", "Writes text with a trained model.");
///   cli.option("--top-k", &top_k, "Sample among the k most likely symbols").at_least(1);
///   if (!cli.parse(argc, argv)) return 0;     // --help was printed
class CommandLine {
 public:
  /// One option, to refine after it was added.
  class Option {
   public:
    Option& required();
    // Bounds are for numbers, words for text; they are checked on what the user gave, not on the
    // default.
    Option& at_least(double minimum);
    Option& greater_than(double bound);
    Option& at_most(double maximum);
    Option& less_than(double bound);
    Option& one_of(std::vector<std::string> words);
    /// In --help, options are listed under their group.
    Option& group(const std::string& name);
    /// What --help calls the value in place of its type: "FILE".
    Option& value_name(const std::string& name);

   private:
    friend class CommandLine;
    struct Entry;
    explicit Option(Entry* entry) : entry_(entry) {}
    Entry* entry_;
  };

  CommandLine(const std::string& program, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  CommandLine(CommandLine&&) = delete;
  CommandLine& operator=(CommandLine&&) = delete;

  /// `name` is "--long" or, with a short alias, "-l,--long". `value` keeps what it holds when the
  /// option is not given; that default is shown in --help. It must outlive parse. Whole numbers are
  /// plain decimal digits; numbers use a decimal point in every locale and are finite.
  Option option(std::string name, int64_t* value, const std::string& help);
  Option option(std::string name, double* value, const std::string& help);
  Option option(std::string name, std::string* value, const std::string& help);
  /// A list: words with commas between them, or the flag given several times.
  Option option(std::string name, std::vector<std::string>* value, const std::string& help);
  /// `--name` sets true; `--no-name` sets false; a configuration file says name = true or false.
  Option flag(std::string name, bool* value, const std::string& help);
  /// A word without dashes, in the order of declaration.
  Option positional(std::string name, std::string* value, const std::string& help);

  /// Adds `--config FILE`: key = value lines as read_config_file takes them, where a key is a flag
  /// without its dashes in front and `_` may stand for `-`.
  void config_file();

  /// How --help says the program is called; by default its name, arguments and [OPTIONS].
  void usage(std::string text);
  /// Text shown after the options in --help.
  void footer(std::string text);

  /// True when the program should go on; false after --help or --version was printed. Throws
  /// UsageError for an unknown flag or key (with the nearest name), a wrong type, a value out of
  /// bounds, a required option that is missing, a configuration file that cannot be read. Call
  /// once.
  bool parse(int argc, const char* const* argv);

  /// Whether the option (its long name, with the dashes) was given, on the command line or in the
  /// file.
  bool given(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
