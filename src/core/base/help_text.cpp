#include "core/base/help_text.h"

#include <algorithm>
#include <sstream>

namespace lockstep {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kHelpColumn = 30;

/// The text from column `indent` on; the first line's indent is the caller's.
std::string wrap(const std::string& text, size_t indent) {
  std::string result;
  size_t column = indent;
  const auto new_line = [&] {
    result += '\n' + std::string(indent, ' ');
    column = indent;
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!result.empty()) {
      new_line();
    }
    // Blanks in front of a word belong to it, so that columns stay as they are.
    for (size_t begin = 0; begin < line.size();) {
      const size_t word = std::min(line.find_first_not_of(' ', begin), line.size());
      const size_t end = std::min(line.find(' ', word), line.size());
      if (column + end - begin > kWidth && column > indent) {
        new_line();
        begin = word;
      }
      result += line.substr(begin, end - begin);
      column += end - begin;
      begin = end;
    }
  }
  return result;
}

std::string show(const HelpLine& line) {
  std::string text = "  " + line.option;
  text += text.size() + 2 > kHelpColumn ? '\n' + std::string(kHelpColumn, ' ')
                                        : std::string(kHelpColumn - text.size(), ' ');
  return text + wrap(line.help, kHelpColumn) + '\n';
}

}  // namespace

std::string help_text(const std::string& usage, const std::string& description,
                      const std::vector<HelpLine>& lines, const std::string& footer) {
  std::string text = "Usage: " + usage + "\n\n" + wrap(description, 0) + '\n';
  std::vector<std::string> shown;
  for (const HelpLine& first : lines) {
    if (std::find(shown.begin(), shown.end(), first.group) != shown.end()) {
      continue;
    }
    shown.push_back(first.group);
    text += '\n' + first.group + ":\n";
    for (const HelpLine& line : lines) {
      text += line.group == first.group ? show(line) : std::string();
    }
  }
  return footer.empty() ? text : text + '\n' + wrap(footer, 0) + '\n';
}

}  // namespace lockstep
