#include "core/base/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <utility>

#include "core/base/build_id.h"
#include "core/base/config_file.h"
#include "core/base/error.h"
#include "core/base/help_text.h"
#include "core/base/option_value.h"

namespace lockstep {

struct CommandLine::Option::Entry : OptionValue {
  CLI::Option* cli = nullptr;
  std::string names;  ///< "-n, --iters"
  std::string help;
  std::string group;

  HelpLine line() const { return {group, names + description(), help}; }
};

struct CommandLine::Impl {
  using Entry = Option::Entry;

  CLI::App app;
  std::string usage;
  std::string footer;
  std::deque<Entry> entries;  // Options point into it
  CLI::Option* config = nullptr;

  Impl(const std::string& program, const std::string& description) : app(description, program) {}

  Entry* add(std::string name, OptionValue::Target target, const std::string& help,
             std::string default_text);
  Entry* find(std::string_view name);
  std::vector<std::string> flag_names() const;
  std::string help() const;
  std::vector<std::string> split_values(int argc, const char* const* argv);
  void read_config(const std::string& path);
};

CommandLine::CommandLine(const std::string& program, const std::string& description)
    : impl_(std::make_unique<Impl>(program, description)) {
  CLI::App& app = impl_->app;
  app.set_help_flag("-h,--help");
  app.set_version_flag("--version", std::string(build_id()));
  // What is left over is reported here, with the nearest name.
  app.allow_extras();
}

CommandLine::~CommandLine() = default;

CommandLine::Option::Entry* CommandLine::Impl::add(std::string name, OptionValue::Target target,
                                                   const std::string& help,
                                                   std::string default_text) {
  Entry& entry = entries.emplace_back();
  entry.target = target;
  entry.default_text = std::move(default_text);
  const size_t dashes = name.find("--");
  entry.name = dashes == std::string::npos ? name : name.substr(dashes);
  entry.help = help;
  if (entry.is_flag()) {
    entry.names = name.substr(0, dashes) + "--[no-]" + entry.name.substr(2);
    entry.cli = app.add_flag(fmt::format("{},!--no-{}", name, entry.name.substr(2)));
  } else {
    entry.names = name;
    entry.cli = app.add_option(name, [](const CLI::results_t&) { return true; });
  }
  if (const size_t comma = entry.names.find(','); comma != std::string::npos) {
    entry.names.insert(comma + 1, 1, ' ');
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

CommandLine::Option CommandLine::option(std::string name, int64_t* value, const std::string& help) {
  return Option(impl_->add(std::move(name), value, help, fmt::format("{}", *value)));
}

CommandLine::Option CommandLine::option(std::string name, double* value, const std::string& help) {
  return Option(impl_->add(std::move(name), value, help, fmt::format("{}", *value)));
}

CommandLine::Option CommandLine::option(std::string name, std::string* value,
                                        const std::string& help) {
  return Option(impl_->add(std::move(name), value, help, *value));
}

CommandLine::Option CommandLine::option(std::string name, std::vector<std::string>* value,
                                        const std::string& help) {
  return Option(impl_->add(std::move(name), value, help, join_words(*value, ",")));
}

CommandLine::Option CommandLine::flag(std::string name, bool* value, const std::string& help) {
  return Option(impl_->add(std::move(name), value, help, *value ? "on" : "off"));
}

CommandLine::Option CommandLine::positional(std::string name, std::string* value,
                                            const std::string& help) {
  return Option(impl_->add(std::move(name), value, help, *value));
}

CommandLine::Option& CommandLine::Option::required() {
  entry_->required = true;
  return *this;
}

CommandLine::Option& CommandLine::Option::at_least(double minimum) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->low = OptionValue::Bound{minimum, true};
  return *this;
}

CommandLine::Option& CommandLine::Option::greater_than(double bound) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->low = OptionValue::Bound{bound, false};
  return *this;
}

CommandLine::Option& CommandLine::Option::at_most(double maximum) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->high = OptionValue::Bound{maximum, true};
  return *this;
}

CommandLine::Option& CommandLine::Option::less_than(double bound) {
  LOCKSTEP_CHECK(entry_->is_number(), "{} is not a number", entry_->name);
  entry_->high = OptionValue::Bound{bound, false};
  return *this;
}

CommandLine::Option& CommandLine::Option::one_of(std::vector<std::string> words) {
  LOCKSTEP_CHECK(entry_->is_text(), "{} is not text", entry_->name);
  entry_->words = std::move(words);
  return *this;
}

CommandLine::Option& CommandLine::Option::group(const std::string& name) {
  entry_->group = name;
  return *this;
}

CommandLine::Option& CommandLine::Option::value_name(const std::string& name) {
  LOCKSTEP_CHECK(!entry_->is_flag(), "{} takes no value", entry_->name);
  entry_->value_name = name;
  return *this;
}

void CommandLine::config_file() {
  impl_->config = impl_->app.add_option("--config", [](const CLI::results_t&) { return true; });
  impl_->config->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::usage(std::string text) {
  impl_->usage = std::move(text);
}

void CommandLine::footer(std::string text) {
  impl_->footer = std::move(text);
}

std::vector<std::string> CommandLine::Impl::flag_names() const {
  std::vector<std::string> names = {"--help", "--version"};
  if (config != nullptr) {
    names.emplace_back("--config");
  }
  for (const Entry& entry : entries) {
    if (!entry.is_positional()) {
      names.push_back(entry.name);
    }
  }
  return names;
}

std::string CommandLine::Impl::help() const {
  std::vector<HelpLine> lines;
  std::string arguments;
  bool grouped = false;
  for (const Entry& entry : entries) {
    lines.push_back(entry.line());
    if (entry.is_positional()) {
      lines.back().group = "Arguments";
      arguments += entry.required ? ' ' + entry.name : " [" + entry.name + ']';
    }
    grouped = grouped || !entry.group.empty();
  }
  const std::string general = grouped ? "General" : "Options";
  for (HelpLine& line : lines) {
    line.group = line.group.empty() ? general : line.group;
  }
  std::vector<HelpLine> own = {{general, "-h, --help", "Show this text and stop"},
                               {general, "--version", "Show the version and stop"}};
  if (config != nullptr) {
    own.insert(own.begin(),
               {general, "--config FILE", "Read options from a TOML file; flags win over it"});
  }
  lines.insert(grouped ? lines.begin() : lines.end(), own.begin(), own.end());
  return help_text(usage.empty() ? app.get_name() + arguments + " [OPTIONS]" : usage,
                   app.get_description(), lines, footer);
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
  if (is_value) {
    throw UsageError("{} needs a value; see --help", arguments.back());
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

void CommandLine::Impl::read_config(const std::string& path) {
  std::vector<std::string> keys;
  for (const std::string& name : flag_names()) {
    if (find(name) != nullptr) {
      keys.push_back(name.substr(2));
    }
  }
  std::vector<const Entry*> seen;
  for (const ConfigEntry& item : read_config_file(path)) {
    std::string key = item.key;
    std::replace(key.begin(), key.end(), '_', '-');
    Entry* entry = find("--" + key);
    if (entry == nullptr) {
      throw UsageError("{}:{}: unknown key '{}'{}; see --help for the names", path, item.line,
                       item.key, suggestion(key, keys));
    }
    const std::string where = fmt::format("{}:{}: {}", path, item.line, item.key);
    if (std::find(seen.begin(), seen.end(), entry) != seen.end()) {
      throw UsageError("{} is given twice; give it once", where);
    }
    seen.push_back(entry);
    if (item.values.size() != 1 && !entry->is_list()) {
      throw UsageError("{} is a list of {} values; give one", where, item.values.size());
    }
    entry->check_quotes(where, item.values, item.quoted);
    if (entry->cli->count() == 0) {
      entry->assign(where, item.values);
    }
  }
}

bool CommandLine::parse(int argc, const char* const* argv) {
  CLI::App& app = impl_->app;
  try {
    app.parse(impl_->split_values(argc, argv));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", impl_->help());
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

}  // namespace lockstep
