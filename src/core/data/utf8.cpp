#include "core/data/utf8.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {
namespace {

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1};
  }
  size_t length = 0;
  uint32_t smallest = 0;  // value that needs this length: anything below is overlong
  uint32_t value = 0;
  if ((lead & 0xe0U) == 0xc0) {
    length = 2, smallest = 0x80, value = lead & 0x1fU;
  } else if ((lead & 0xf0U) == 0xe0) {
    length = 3, smallest = 0x800, value = lead & 0x0fU;
  } else if ((lead & 0xf8U) == 0xf0) {
    length = 4, smallest = 0x10000, value = lead & 0x07U;
  }
  if (length == 0 || text.size() - offset < length) {
    return {};
  }
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[offset + i])) {
      return {};
    }
    value = (value << 6U) | (byte(i) & 0x3fU);
  }
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < smallest || value > 0x10ffff || surrogate) {
    return {};
  }
  return {value, length};
}

std::string encode_utf8(char32_t code_point) {
  const uint32_t c = code_point;
  const auto tail = [c](unsigned shift) {
    return static_cast<char>(0x80U | ((c >> shift) & 0x3fU));
  };
  if (c < 0x80) {
    return {static_cast<char>(c)};
  }
  if (c < 0x800) {
    return {static_cast<char>(0xc0U | (c >> 6U)), tail(0)};
  }
  if (c < 0x10000) {
    return {static_cast<char>(0xe0U | (c >> 12U)), tail(6), tail(0)};
  }
  return {static_cast<char>(0xf0U | (c >> 18U)), tail(12), tail(6), tail(0)};
}

size_t next_code_point(std::string_view text, size_t offset) {
  while (offset < text.size() && is_continuation(text[offset])) {
    ++offset;
  }
  return offset;
}

int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); });
}

std::string describe_place(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const int64_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 = 0
  const int64_t column = 1 + count_code_points(before.substr(line_begin));
  return fmt::format("byte {} (line {}, column {})", offset, line, column);
}

}  // namespace lockstep
