#include "core/base/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <deque>
#include <fstream>
#include <new>
#include <numeric>
#include <optional>
#include <sstream>
#include <variant>

#include "core/base/build_id.h"
#include "core/base/error.h"
#include "core/base/log.h"

namespace lockstep {
namespace {

using Target = std::variant<int64_t*, double*, std::string*, std::vector<std::string>*, bool*>;

/// One side of an option's range.
struct Bound {
  double value;
  bool inclusive;
};

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

// Levenshtein's distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// " (did you mean X?)", or nothing when no candidate is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* nearest = nullptr;
  size_t distance = std::max<size_t>(2, word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const size_t d = edit_distance(word, candidate);
    if (d < distance) {
      distance = d;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? std::string() : fmt::format(" (did you mean {}?)", *nearest);
}

// std::from_chars reads a decimal point whatever the locale says.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    return std::nullopt;
  }
  return value;
}

// Removes comments, which CLI11 would also cut out of quoted text, and refuses escapes, which it
// would leave in.
std::string without_comments(std::istream& input, const std::string& path) {
  std::string result;
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    char quote = '\0';
    for (size_t i = 0; i < line.size(); ++i) {
      if (quote == '"' && line[i] == '\\') {
        throw UsageError("{}:{}: escapes like \\{} are not read; write the text between '…'", path,
                         number, i + 1 < line.size() ? line.substr(i + 1, 1) : "");
      }
      if (quote == '\0' && line[i] == '#') {
        line.erase(i);
      } else if (quote == '\0' && (line[i] == '"' || line[i] == '\'')) {
        quote = line[i];
      } else if (line[i] == quote) {
        quote = '\0';
      }
    }
    result += line + '\n';
  }
  return result;
}

}  // namespace

struct CommandLine::Option::Entry {
  std::string name;  ///< "--long", or a positional's word
  Target target;
  CLI::Option* cli = nullptr;
  std::string default_text;
  std::optional<Bound> low;
  std::optional<Bound> high;
  std::vector<std::string> words;
  bool required = false;
  bool given = false;

  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_number() const {
    return std::holds_alternative<int64_t*>(target) || std::holds_alternative<double*>(target);
  }
  std::string_view type() const;
  std::string bounds() const;
  void check_bounds(const std::string& where, double value, const std::string& text) const;
  void assign(const std::string& where, const std::vector<std::string>& texts);
  void assign_one(const std::string& where, const std::string& text);
};

std::string_view CommandLine::Option::Entry::type() const {
  constexpr std::string_view kTypes[] = {"INT", "NUMBER", "TEXT", "LIST", ""};
  return kTypes[target.index()];
}

// "at least 1 and less than 5".
std::string CommandLine::Option::Entry::bounds() const {
  std::vector<std::string> parts;
  if (low) {
    parts.push_back(fmt::format("{} {}", low->inclusive ? "at least" : "greater than", low->value));
  }
  if (high) {
    parts.push_back(fmt::format("{} {}", high->inclusive ? "at most" : "less than", high->value));
  }
  return join(parts, " and ");
}

void CommandLine::Option::Entry::check_bounds(const std::string& where, double value,
                                              const std::string& text) const {
  const bool above = !low || (low->inclusive ? value >= low->value : value > low->value);
  const bool below = !high || (high->inclusive ? value <= high->value : value < high->value);
  if (!above || !below) {
    throw UsageError("{} is {}; it must be {}", where, text, bounds());
  }
}

void CommandLine::Option::Entry::assign_one(const std::string& where, const std::string& text) {
  if (auto* const* whole = std::get_if<int64_t*>(&target)) {
    const auto value = parse_number<int64_t>(text);
    if (!value) {
      throw UsageError("{} expects a whole number, not '{}'", where, text);
    }
    check_bounds(where, static_cast<double>(*value), text);
    **whole = *value;
  } else if (auto* const* real = std::get_if<double*>(&target)) {
    const auto value = parse_number<double>(text);
    if (!value || !std::isfinite(*value)) {
      throw UsageError("{} expects a number like 0.001 or 1e-3, not '{}'", where, text);
    }
    check_bounds(where, *value, text);
    **real = *value;
  } else if (auto* const* flag = std::get_if<bool*>(&target)) {
    if (text != "true" && text != "false") {
      throw UsageError("{} expects true or false, not '{}'", where, text);
    }
    **flag = text == "true";
  } else if (auto* const* word = std::get_if<std::string*>(&target)) {
    if (!words.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
      throw UsageError("{} is '{}'; it must be one of {}{}", where, text, join(words, ", "),
                       suggestion(text, words));
    }
    **word = text;
  }
}

void CommandLine::Option::Entry::assign(const std::string& where,
                                        const std::vector<std::string>& texts) {
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&target)) {
    (*list)->clear();
    for (const std::string& text : texts) {
      for (std::string& word : CLI::detail::split(text, ',')) {
        (*list)->push_back(std::move(word));
      }
    }
  } else if (texts.size() != 1) {
    throw UsageError("{} is given {} times; give it once", where, texts.size());
  } else {
    assign_one(where, texts.front());
  }
  given = true;
}

struct CommandLine::Impl {
  using Entry = Option::Entry;

  CLI::App app;
  std::deque<Entry> entries;  // Options point into it
  CLI::Option* config = nullptr;

  Impl(const std::string& program, const std::string& description) : app(description, program) {}

  Entry* add(std::string name, Target target, const std::string& help, std::string default_text);
  Entry* find(std::string_view name);
  std::vector<std::string> flag_names() const;
  std::vector<std::string> split_values(int argc, const char* const* argv);
  void read_config(const std::string& path);
};

namespace {

/// Shows an option's type, bounds and default.
class HelpFormatter : public CLI::Formatter {
 public:
  using Describe = std::function<std::string(const CLI::Option*)>;
  explicit HelpFormatter(Describe describe) : describe_(std::move(describe)) { column_width(32); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return describe_(option);
  }

 private:
  Describe describe_;
};

}  // namespace

CommandLine::CommandLine(std::string program, std::string description)
    : impl_(std::make_unique<Impl>(program, description)) {
  Impl* impl = impl_.get();
  impl->app.set_help_flag("-h,--help", "Show this text and stop");
  impl->app.set_version_flag("--version", std::string(build_id()), "Show the version and stop");
  // What is left over is reported here, with the nearest name.
  impl->app.allow_extras();
  impl->app.formatter(std::make_shared<HelpFormatter>([impl](const CLI::Option* option) {
    std::string text;
    for (const Option::Entry& entry : impl->entries) {
      if (entry.cli == option) {
        const std::string type = entry.words.empty()
                                     ? std::string(entry.type())
                                     : fmt::format("{{{}}}", join(entry.words, ","));
        text += type.empty() ? "" : " " + type;
        text += entry.required ? " (required)" : "";
        text += entry.default_text.empty()
                    ? ""
                    : fmt::format(" [{}]",
                                  CLI::detail::find_and_replace(entry.default_text, "\n", "\\n"));
      }
    }
    return option == impl->config ? " FILE" : text;
  }));
}

CommandLine::~CommandLine() = default;

CommandLine::Option::Entry* CommandLine::Impl::add(std::string name, Target target,
                                                   const std::string& help,
                                                   std::string default_text) {
  Entry& entry = entries.emplace_back();
  entry.target = target;
  entry.default_text = std::move(default_text);
  const size_t dashes = name.find("--");
  entry.name = dashes == std::string::npos ? name : name.substr(dashes);
  if (entry.is_flag()) {
    entry.cli = app.add_flag(fmt::format("{},!--no-{}", name, entry.name.substr(2)), help);
  } else {
    entry.cli = app.add_option(
        name, [](const CLI::results_t&) { return true; }, help);
  }
  // How often an option may be given is checked here, with a message in our words.
  entry.cli->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return &entry;
}

CommandLine::Option::Entry* CommandLine::Impl::find(std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

CommandLine::Option CommandLine::option(std::string name, int64_t* value, std::string help) {
  return Option(impl_->add(std::move(name), value, help, fmt::format("{}", *value)));
}

CommandLine::Option CommandLine::option(std::string name, double* value, std::string help) {
  return Option(impl_->add(std::move(name), value, help, fmt::format("{}", *value)));
}

CommandLine::Option CommandLine::option(std::string name, std::string* value, std::string help) {
  return Option(impl_->add(std::move(name), value, help, *value));
}

CommandLine::Option CommandLine::option(std::string name, std::vector<std::string>* value,
                                        std::string help) {
  return Option(impl_->add(std::move(name), value, help, join(*value, ",")));
}

CommandLine::Option CommandLine::flag(std::string name, bool* value, std::string help) {
  return Option(impl_->add(std::move(name), value, help, *value ? "on" : "off"));
}

CommandLine::Option CommandLine::positional(std::string name, std::string* value,
                                            std::string help) {
  return Option(impl_->add(std::move(name), value, help, *value));
}

CommandLine::Option& CommandLine::Option::required() {
  entry_->required = true;
  entry_->default_text.clear();
  return *this;
}

CommandLine::Option& CommandLine::Option::at_least(double minimum) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->low = Bound{minimum, true};
  return *this;
}

CommandLine::Option& CommandLine::Option::greater_than(double bound) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->low = Bound{bound, false};
  return *this;
}

CommandLine::Option& CommandLine::Option::at_most(double maximum) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->high = Bound{maximum, true};
  return *this;
}

CommandLine::Option& CommandLine::Option::less_than(double bound) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->high = Bound{bound, false};
  return *this;
}

CommandLine::Option& CommandLine::Option::one_of(std::vector<std::string> words) {
  LOCKSTEP_CHECK(std::holds_alternative<std::string*>(entry_->target), "{} is not text",
                 entry_->name);
  entry_->words = std::move(words);
  return *this;
}

CommandLine::Option& CommandLine::Option::group(std::string name) {
  entry_->cli->group(name);
  return *this;
}

void CommandLine::config_file() {
  impl_->config = impl_->app.add_option(
      "--config", [](const CLI::results_t&) { return true; },
      "Read options from a TOML file; flags win over it");
  impl_->config->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::footer(std::string text) {
  impl_->app.footer(std::move(text));
}

std::vector<std::string> CommandLine::Impl::flag_names() const {
  std::vector<std::string> names = {"--help", "--version"};
  if (config != nullptr) {
    names.emplace_back("--config");
  }
  for (const Entry& entry : entries) {
    if (!entry.cli->get_positional()) {
      names.push_back(entry.name);
    }
  }
  return names;
}

// The arguments, last first as CLI11 takes them, with --name=value cut in two: CLI11 would take the
// argument after an empty value for the value.
std::vector<std::string> CommandLine::Impl::split_values(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  bool is_value = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const bool was_value = is_value;
    const CLI::Option* option = nullptr;
    if (!was_value && argument.size() > 1 && argument[0] == '-') {
      option = app.get_option_no_throw(argument.substr(0, equals));
    }
    is_value = option != nullptr && option->get_items_expected_max() > 0;
    if (is_value && equals != std::string::npos) {
      arguments.push_back(argument.substr(0, equals));
      arguments.push_back(argument.substr(equals + 1));
      is_value = false;
    } else {
      arguments.push_back(argument);
    }
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

void CommandLine::Impl::read_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw UsageError("--config: cannot read {}", path);
  }
  std::istringstream text(without_comments(file, path));
  std::vector<std::string> keys;
  for (const std::string& name : flag_names()) {
    if (find(name) != nullptr) {
      keys.push_back(name.substr(2));
    }
  }
  std::vector<const Entry*> seen;
  CLI::ConfigTOML toml;
  toml.comment('\0');
  for (const CLI::ConfigItem& item : toml.from_config(text)) {
    if (item.name == "++" || item.name == "--") {  // CLI11's marks of a section's begin and end
      continue;
    }
    std::string key = item.name;
    std::replace(key.begin(), key.end(), '_', '-');
    Entry* entry = find("--" + key);
    if (entry == nullptr) {
      throw UsageError("{}: unknown key '{}'{}; see --help for the names", path, item.name,
                       suggestion(key, keys));
    }
    const std::string where = fmt::format("{}: {}", path, item.name);
    if (std::find(seen.begin(), seen.end(), entry) != seen.end()) {
      throw UsageError("{} is given twice; give it once", where);
    }
    seen.push_back(entry);
    if (entry->cli->count() == 0) {
      entry->assign(where, item.inputs);
    }
  }
}

bool CommandLine::parse(int argc, const char* const* argv) {
  CLI::App& app = impl_->app;
  try {
    app.parse(impl_->split_values(argc, argv));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::CallForVersion&) {
    fmt::print("{}\n", app.version());
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError("{}", error.what());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra[0] == '-') {
      const std::string name = extra.substr(0, extra.find('='));
      throw UsageError("unknown flag {}{}; see --help", name,
                       suggestion(name, impl_->flag_names()));
    }
    throw UsageError("unexpected word '{}'; see --help", extra);
  }
  for (Option::Entry& entry : impl_->entries) {
    if (entry.cli->count() > 0) {
      entry.assign(entry.name, entry.cli->results());
    }
  }
  if (impl_->config != nullptr && impl_->config->count() > 0) {
    if (impl_->config->count() > 1) {
      throw UsageError("--config is given {} times; give it once", impl_->config->count());
    }
    impl_->read_config(impl_->config->results().front());
  }
  for (const Option::Entry& entry : impl_->entries) {
    if (entry.required && !entry.given) {
      throw UsageError("{} is required; see --help", entry.name);
    }
  }
  return true;
}

bool CommandLine::given(std::string_view name) const {
  const Option::Entry* entry = impl_->find(name);
  LOCKSTEP_CHECK(entry != nullptr, "there is no option {}", name);
  return entry->given;
}

int run_main(std::string_view program, int (*body)(int, char**), int argc, char** argv) {
  const auto fail = [program](std::string message, ExitCode code) {
    std::replace(message.begin(), message.end(), '\n', ' ');
    log("{}: {}", program, message);
    return static_cast<int>(code);
  };
  try {
    const int status = body(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return fail("cannot write standard output", ExitCode::kIo);
    }
    return status;
  } catch (const Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return fail("out of memory", ExitCode::kOutOfMemory);
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::kInternal);
  }
}

}  // namespace lockstep
