#include "core/base/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/base/error.h"

namespace lockstep {
namespace {

// What --help calls the values; in the order of OptionValue::Target.
constexpr std::string_view kTypes[] = {" INT", " NUMBER", " TEXT", " LIST", ""};
// What errors call them.
constexpr std::string_view kExpected[] = {"a whole number", "a number like 0.001 or 1e-3", "text",
                                          "text", "true or false"};

// Levenshtein's distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (const char letter : a) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (letter == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
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

// "at least 1 and less than 5".
std::string bounds_text(const OptionValue& option) {
  std::vector<std::string> parts;
  if (option.low) {
    parts.push_back(fmt::format("{} {}", option.low->inclusive ? "at least" : "greater than",
                                option.low->value));
  }
  if (option.high) {
    parts.push_back(
        fmt::format("{} {}", option.high->inclusive ? "at most" : "less than", option.high->value));
  }
  return join_words(parts, " and ");
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

std::string join_words(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

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

std::string OptionValue::description() const {
  std::string text(is_positional() ? "" : kTypes[target.index()]);
  if (!words.empty()) {
    text = fmt::format(" {{{}}}", join_words(words, ","));
  } else if (!value_name.empty()) {
    text = ' ' + value_name;
  }
  if (required) {
    text += " (required)";
  } else if (!default_text.empty()) {
    text += fmt::format(" [{}]", default_text == "\n" ? "\\n" : default_text);
  }
  return text;
}

void OptionValue::check_quotes(const std::string& where, const std::vector<std::string>& texts,
                               bool quoted) const {
  const std::string values = join_words(texts, ", ");
  const bool takes_text = is_text() || is_list();
  if (takes_text && !quoted) {
    throw UsageError("{} takes text; put {} between quotes", where, values);
  }
  if (!takes_text && quoted) {
    throw UsageError("{} expects {}, not text: write '{}' without quotes", where,
                     kExpected[target.index()], values);
  }
}

void OptionValue::check_bounds(const std::string& where, double number,
                               const std::string& text) const {
  const bool above = !low || (low->inclusive ? number >= low->value : number > low->value);
  const bool below = !high || (high->inclusive ? number <= high->value : number < high->value);
  if (!above || !below) {
    throw UsageError("{} is {}; it must be {}", where, text, bounds_text(*this));
  }
}

void OptionValue::assign_one(const std::string& where, const std::string& text) {
  const auto refuse = [&] {
    throw UsageError("{} expects {}, not '{}'", where, kExpected[target.index()], text);
  };
  if (auto* const* whole = std::get_if<int64_t*>(&target)) {
    const auto value = parse_number<int64_t>(text);
    if (!value) {
      refuse();
    }
    check_bounds(where, static_cast<double>(*value), text);
    **whole = *value;
  } else if (auto* const* real = std::get_if<double*>(&target)) {
    const auto value = parse_number<double>(text);
    if (!value || !std::isfinite(*value)) {
      refuse();
    }
    check_bounds(where, *value, text);
    **real = *value;
  } else if (auto* const* flag = std::get_if<bool*>(&target)) {
    if (text != "true" && text != "false") {
      refuse();
    }
    **flag = text == "true";
  } else if (auto* const* word = std::get_if<std::string*>(&target)) {
    if (!words.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
      throw UsageError("{} is '{}'; it must be one of {}{}", where, text, join_words(words, ", "),
                       suggestion(text, words));
    }
    if (required && text.empty()) {
      throw UsageError("{} is empty; see --help for what to give", where);
    }
    **word = text;
  }
}

void OptionValue::assign(const std::string& where, const std::vector<std::string>& texts) {
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&target)) {
    (*list)->clear();
    for (const std::string& text : texts) {
      for (std::string& word : split(text, ',')) {
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

}  // namespace lockstep
