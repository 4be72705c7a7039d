#include "core/data/utf8.h"

#include <gtest/gtest.h>

#include "core/data/utf8_stream.h"

namespace lockstep {
namespace {

TEST(Utf8, DecodesWhatItEncodesForEveryCodePoint) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xd800) {
      c = 0xe000;  // surrogates are not characters
    }
    const std::string bytes = encode_utf8(c);
    const CodePoint point = decode_utf8(bytes, 0);
    ASSERT_EQ(point.value, c);
    ASSERT_EQ(point.length, bytes.size());
  }
}

TEST(Utf8, HasTheLengthsOfTheStandard) {
  EXPECT_EQ(encode_utf8(0x7f), "\x7f");
  EXPECT_EQ(encode_utf8(0x80), "\xc2\x80");
  EXPECT_EQ(encode_utf8(0x20ac), "\xe2\x82\xac");
  EXPECT_EQ(encode_utf8(0x1f600), "\xf0\x9f\x98\x80");
}

TEST(Utf8, RefusesWhatIsNotUtf8) {
  const std::pair<const char*, std::string_view> cases[] = {
      {"continuation byte alone", "\x80"},
      {"overlong NUL", std::string_view("\xc0\x80", 2)},
      {"overlong slash in two bytes", "\xc1\xaf"},
      {"overlong in three bytes", "\xe0\x9f\xbf"},
      {"overlong in four bytes", "\xf0\x8f\xbf\xbf"},
      {"first surrogate", "\xed\xa0\x80"},
      {"last surrogate", "\xed\xbf\xbf"},
      {"U+110000", "\xf4\x90\x80\x80"},
      {"lead byte above any code point", "\xf8\x88\x80\x80\x80"},
      {"0xff", "\xff"},
      // What would complete them lies behind the end of the text.
      {"cut off after one of two", std::string_view("\xc3\xa9", 1)},
      {"cut off after one of three", std::string_view("\xe2\x82\xac", 1)},
      {"cut off after two of three", std::string_view("\xe2\x82\xac", 2)},
      {"cut off after three of four", std::string_view("\xf0\x9f\x98\x80", 3)},
      {"lead followed by a letter", "\xc3x"},
      {"lead, continuation, letter", "\xe2\x82x"},
  };
  for (const auto& [what, bytes] : cases) {
    EXPECT_EQ(decode_utf8(bytes, 0).length, 0U) << what;
  }
  EXPECT_EQ(decode_utf8(std::string_view("ab\xc3\xa9", 3), 2).length, 0U)
      << "cut off, at an offset";
}

TEST(Utf8, DecodesAtAnOffset) {
  const CodePoint point = decode_utf8("a\xc3\xa9z", 1);
  EXPECT_EQ(point.value, U'\u00e9');
  EXPECT_EQ(point.length, 2U);
}

TEST(Utf8, FindsTheNextCodePoint) {
  const std::string_view text = "\xe2\x82\xacx";
  EXPECT_EQ(next_code_point(text, 0), 0U);
  EXPECT_EQ(next_code_point(text, 1), 3U);
  EXPECT_EQ(next_code_point(text, 2), 3U);
  EXPECT_EQ(next_code_point(text, 4), 4U);
  EXPECT_EQ(count_code_points(text), 2);
}

TEST(Utf8, DescribesAPlace) {
  const std::string_view text = "ab\n\xc3\xa9z\n";
  EXPECT_EQ(describe_place(text, 0), "byte 0 (line 1, column 1)");
  EXPECT_EQ(describe_place(text, 2), "byte 2 (line 1, column 3)");
  EXPECT_EQ(describe_place(text, 3), "byte 3 (line 2, column 1)");
  EXPECT_EQ(describe_place(text, 5), "byte 5 (line 2, column 2)");
  EXPECT_EQ(describe_place(text, 7), "byte 7 (line 3, column 1)");
}

TEST(Utf8Stream, GivesEveryTextBackByteByByte) {
  std::string text;
  for (char32_t c = 1; c < 0x110000; c += c < 0x3000 ? 1 : 97) {
    text += c >= 0xd800 && c < 0xe000 ? std::string() : encode_utf8(c);
  }
  Utf8Stream stream;
  std::string shown;
  for (const char byte : text) {
    shown += stream.feed({&byte, 1});
  }
  EXPECT_EQ(shown, text);
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ReplacesWhatIsNotUtf8) {
  Utf8Stream stream;
  EXPECT_EQ(stream.feed("a\xff"), "a\xef\xbf\xbd");
  EXPECT_EQ(stream.feed("\xe2"), "");
  EXPECT_EQ(stream.feed("\x82"), "");
  EXPECT_EQ(stream.feed("x"), "\xef\xbf\xbd\xef\xbf\xbdx");
  EXPECT_EQ(stream.feed("\xed\xa0"), "\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
  EXPECT_EQ(stream.feed("\xf0\x9f"), "");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace lockstep
