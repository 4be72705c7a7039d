#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// A code point and the bytes it took.
struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  ///< 0: the bytes are not UTF-8
};

/// The code point that starts at `offset` < text.size(). Strict (Unicode 15, table 3-7): overlong
/// forms, surrogates, values past U+10FFFF and cut-off sequences are not UTF-8.
CodePoint decode_utf8(std::string_view text, size_t offset);

std::string encode_utf8(char32_t code_point);

/// The first start of a code point at or after `offset` in valid UTF-8, or text.size().
size_t next_code_point(std::string_view text, size_t offset);

/// Code points in valid UTF-8.
int64_t count_code_points(std::string_view text);

/// "byte 17 (line 2, column 5)": a place in a text for a message. Lines and columns count from 1,
/// columns in code points.
std::string describe_place(std::string_view text, size_t offset);

}  // namespace lockstep
