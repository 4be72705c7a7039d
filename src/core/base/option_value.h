#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep {

/// What one option of a CommandLine takes and where its value goes. Knows nothing of flags' syntax.
struct OptionValue {
  using Target = std::variant<int64_t*, double*, std::string*, std::vector<std::string>*, bool*>;
  struct Bound {
    double value;
    bool inclusive;
  };

  std::string name;  ///< "--long", or a positional's word
  Target target;
  std::string default_text;
  std::optional<Bound> low;
  std::optional<Bound> high;
  std::vector<std::string> words;  ///< the text it may be; empty = any
  std::string value_name;          ///< in --help; empty = that of its type
  bool required = false;
  bool given = false;

  bool is_positional() const { return name.empty() || name.front() != '-'; }
  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const { return std::holds_alternative<std::vector<std::string>*>(target); }
  bool is_text() const { return std::holds_alternative<std::string*>(target); }
  bool is_number() const {
    return std::holds_alternative<int64_t*>(target) || std::holds_alternative<double*>(target);
  }
  /// What --help shows after the name: " INT [4]".
  std::string description() const;

  /// Throws UsageError when a configuration file gives a number as text or text without quotes.
  void check_quotes(const std::string& where, const std::vector<std::string>& texts,
                    bool quoted) const;

  /// Reads the value that was given, `texts` being more than one element only when it was given
  /// more than once. Throws UsageError starting with `where` (the flag, or file and key).
  void assign(const std::string& where, const std::vector<std::string>& texts);

 private:
  void assign_one(const std::string& where, const std::string& text);
  void check_bounds(const std::string& where, double number, const std::string& text) const;
};

std::string join_words(const std::vector<std::string>& words, std::string_view separator);

/// " (did you mean X?)", or nothing when no candidate is near to the word by edit distance.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace lockstep
