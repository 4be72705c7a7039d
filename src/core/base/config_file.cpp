#include "core/base/config_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kSpace = " \t\r";
constexpr std::streamsize kMostBytes = 1 << 20;

/// The rest of one line, taken from its front.
class Line {
 public:
  Line(std::string_view text, std::string where) : rest_(text), where_(std::move(where)) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw UsageError("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size()));
  }
  bool at_end() {
    skip_space();
    return rest_.empty() || rest_.front() == '#';
  }
  bool take(char expected) {
    skip_space();
    if (rest_.empty() || rest_.front() != expected) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  std::string take_until(std::string_view ends) {
    skip_space();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(word.size());
    return std::string(word);
  }
  bool at_quote() {
    skip_space();
    return !rest_.empty() && (rest_.front() == '"' || rest_.front() == '\'');
  }

  /// Text between quotes, or a bare word.
  std::string take_value() {
    if (!at_quote()) {
      std::string word = take_until(" \t\r#,]");
      if (word.empty()) {
        refuse("a value is missing");
      }
      return word;
    }
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) {
      refuse("the text that begins with {0} has no closing {0} on this line", quote);
    }
    const std::string_view text = rest_.substr(0, end);
    const size_t escape = text.find('\\');
    if (quote == '"' && escape != std::string_view::npos) {
      refuse("escapes like {} are not read; write the text between '…'",
             rest_.substr(escape, std::min<size_t>(2, rest_.size() - escape)));
    }
    rest_.remove_prefix(end + 1);
    return std::string(text);
  }

 private:
  std::string_view rest_;
  std::string where_;
};

bool is_bare_key(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

void read_value(Line& line, ConfigEntry& entry) {
  entry.quoted = entry.quoted && line.at_quote();
  entry.values.push_back(line.take_value());
}

void read_list(Line& line, ConfigEntry& entry) {
  bool separated = true;
  while (!line.take(']')) {
    if (line.at_end()) {
      line.refuse("the list of '{}' has no closing ] on this line", entry.key);
    }
    if (!separated) {
      line.refuse("the elements of '{}' need commas between them", entry.key);
    }
    read_value(line, entry);
    separated = line.take(',');
  }
}

ConfigEntry read_entry(Line& line) {
  ConfigEntry entry;
  entry.key = line.take_until(" \t\r=#");
  if (!is_bare_key(entry.key)) {
    line.refuse("'{}' is no key; a line is: key = value, where keys have letters, digits, - and _",
                entry.key);
  }
  if (!line.take('=')) {
    line.refuse("'{0}' has no = behind it; a line is: {0} = value", entry.key);
  }
  if (line.at_end()) {
    line.refuse("'{}' has no value", entry.key);
  }
  if (line.take('[')) {
    read_list(line, entry);
  } else {
    read_value(line, entry);
  }
  if (!line.at_end()) {
    line.refuse("'{}' has more than one value; text with spaces or commas needs quotes around it",
                entry.key);
  }
  return entry;
}

void read_section(Line& line) {
  const std::string name = line.take_until("]#");
  if (!line.take(']') || name.empty() || name.front() == '[' || !line.at_end()) {
    line.refuse("a section is written [name], alone on its line");
  }
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::string text(static_cast<size_t>(kMostBytes) + 1, '\0');
  file.read(text.data(), kMostBytes + 1);
  if (file.bad() || (file.fail() && !file.eof())) {
    throw UsageError("--config: cannot read {}", path);
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.gcount() > kMostBytes || text.find('\0') != std::string::npos) {
    throw UsageError("--config: {} is no text file of key = value lines in UTF-8", path);
  }
  return text;
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  std::string text = read_text(path);
  if (text.starts_with(kByteOrderMark)) {
    text.erase(0, kByteOrderMark.size());
  }
  std::istringstream input(text);
  std::vector<ConfigEntry> entries;
  std::string content;
  for (int number = 1; std::getline(input, content); ++number) {
    Line line(content, fmt::format("{}:{}", path, number));
    if (line.at_end()) {
      continue;
    }
    if (line.take('[')) {
      read_section(line);
    } else {
      entries.push_back(read_entry(line));
      entries.back().line = number;
    }
  }
  return entries;
}

}  // namespace lockstep
