#include "core/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/data/utf8.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string decode_all(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    text += tokenizer.decode(token);
  }
  return text;
}

TEST(Tokenizer, NumbersCodePointsInTheirOrder) {
  const Tokenizer tokenizer = Tokenizer::chars_of("b€a\nb");
  EXPECT_EQ(tokenizer.kind(), TokenizerKind::kChar);
  EXPECT_EQ(tokenizer.size(), 4);
  EXPECT_THAT(tokenizer.encode("\nab€"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(tokenizer.decode(3), "€");
}

TEST(Tokenizer, BytesAreTheirOwnIds) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  EXPECT_EQ(tokenizer.kind(), TokenizerKind::kByte);
  EXPECT_EQ(tokenizer.size(), 256);
  EXPECT_THAT(tokenizer.encode(std::string_view("\0a\xff", 3)), ElementsAre(0, 97, 255));
  EXPECT_EQ(tokenizer.decode(255), "\xff");
}

TEST(Tokenizer, GivesTheTextBack) {
  const std::string text = "Zwölf Boxkämpfer\tjagen Viktor – 東京 😀 \"\\ \r\n";
  for (const Tokenizer& tokenizer : {Tokenizer::chars_of(text), Tokenizer::bytes()}) {
    EXPECT_EQ(decode_all(tokenizer, tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, NamesThePlaceOfInvalidUtf8) {
  const std::string expected =
      "the text is not UTF-8 at byte 4 (line 2, column 2): 0xff; convert it, or read it as bytes "
      "(tokenize --kind byte)";
  EXPECT_EQ(error_of<UsageError>([] { Tokenizer::chars_of("ab\nc\xff"); }), expected);
  EXPECT_EQ(error_of<UsageError>([] { Tokenizer::chars_of("abc\n").encode("ab\nc\xff"); }),
            expected);
  EXPECT_EQ(error_of<UsageError>([] { Tokenizer::chars_of(""); }), "the text is empty");
}

TEST(Tokenizer, NamesASymbolThatItDoesNotHave) {
  const Tokenizer tokenizer = Tokenizer::chars_of("abz");
  EXPECT_EQ(error_of<UsageError>([&] { tokenizer.encode("abc"); }),
            "the vocabulary of 3 symbols has no 'c' (U+0063), at byte 2 (line 1, column 3) of the "
            "text");
  EXPECT_EQ(error_of<UsageError>([&] { tokenizer.encode("a\n"); }),
            "the vocabulary of 3 symbols has no U+000A, at byte 1 (line 1, column 2) of the text");
  EXPECT_THAT(error_of<UsageError>([&] { tokenizer.encode("😀"); }), HasSubstr("(U+1F600)"));
}

TEST(Tokenizer, StartsFromANewlineWhereThereIsOne) {
  EXPECT_EQ(Tokenizer::bytes().start_token(), '\n');
  EXPECT_EQ(Tokenizer::chars_of("a\t\n").start_token(), 1);
  EXPECT_EQ(Tokenizer::chars_of("ab").start_token(), 0);
  EXPECT_EQ(Tokenizer::chars_of("\t").start_token(), 0);
}

TEST(Tokenizer, ReadsBackWhatItSaved) {
  // Every ASCII character and some of each length that JSON could spoil.
  std::string text;
  for (char32_t c = 0; c < 0x80; ++c) {
    text += encode_utf8(c);
  }
  for (const char32_t c : {0x80, 0x85, 0xa0, 0x7ff, 0x800, 0x2028, 0x2029, 0xd7ff, 0xe000, 0xfeff,
                           0xfffe, 0xffff, 0x10000, 0x1f600, 0x10ffff}) {
    text += encode_utf8(c);
  }
  const TemporaryFolder folder;
  for (const Tokenizer& tokenizer : {Tokenizer::chars_of(text), Tokenizer::bytes()}) {
    tokenizer.save(folder / "vocab.json");
    const Tokenizer loaded = Tokenizer::load(folder / "vocab.json");
    EXPECT_EQ(loaded.kind(), tokenizer.kind());
    EXPECT_EQ(loaded.size(), tokenizer.size());
    EXPECT_EQ(loaded.encode(text), tokenizer.encode(text));
    EXPECT_EQ(loaded.to_json(), tokenizer.to_json());
  }
}

TEST(Tokenizer, WritesTheDocumentedFile) {
  EXPECT_EQ(Tokenizer::chars_of("b\na").to_json(),
            R"({"format":"lockstep-vocabulary","version":1,"kind":"char","symbols":["\n","a","b"]})"
            "\n");
  EXPECT_EQ(Tokenizer::bytes().to_json(),
            R"({"format":"lockstep-vocabulary","version":1,"kind":"byte"})"
            "\n");
}

TEST(Tokenizer, RefusesADamagedVocabulary) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "x.json: not a vocabulary"},
      {"{", "x.json: not a vocabulary"},
      {R"({"format":"lockstep-vocabulary","version":1,"kind":"char","symbols":["a","b)",
       "x.json: not a vocabulary (Closing quote expected in string); run tokenize again"},
      {"[]", "x.json: not a vocabulary"},
      {R"({"a": 1})", "x.json: not a vocabulary"},
      {R"({"format": "lockstep-vocabulary", "version": "one"})", "x.json: not a vocabulary"},
      {R"({"format": "bpe", "version": 1, "kind": "byte"})", "its \"format\" is 'bpe'"},
      {R"({"format": "lockstep-vocabulary", "version": 2, "kind": "byte"})",
       "version 2 of the vocabulary format; this build reads version 1"},
      {R"({"format": "lockstep-vocabulary", "version": 1, "kind": "word", "symbols": ["a"]})",
       "kind 'word' with 1 symbols"},
      {R"({"format": "lockstep-vocabulary", "version": 1, "kind": "char"})",
       "kind 'char' with 0 symbols"},
      {R"({"format": "lockstep-vocabulary", "version": 1, "kind": "byte", "symbols": ["a"]})",
       "kind 'byte' with 1 symbols"},
      {R"({"format": "lockstep-vocabulary", "version": 1, "kind": "char", "symbols": ["a", ""]})",
       "symbol 1 is not one code point"},
      {R"({"format": "lockstep-vocabulary", "version": 1, "kind": "char", "symbols": ["ab"]})",
       "symbol 0 is not one code point"},
      {R"({"format": "lockstep-vocabulary", "version": 1, "kind": "char", "symbols": ["a", "a"]})",
       "symbol 1, 'a' (U+0061), is not above the one before it"},
      {R"({"format": "lockstep-vocabulary", "version": 1, "kind": "char", "symbols": ["b", "a"]})",
       "symbol 1, 'a' (U+0061), is not above the one before it"},
  };
  for (const auto& [json, message] : cases) {
    EXPECT_THAT(error_of<CorruptError>([&, json = json] { Tokenizer::parse(json, "x.json"); }),
                HasSubstr(message))
        << json;
  }
  EXPECT_THROW(Tokenizer::load("/nonexistent/vocab.json"), IoError);
}

}  // namespace
}  // namespace lockstep
