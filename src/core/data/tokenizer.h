#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class TokenizerKind : uint8_t { kChar, kByte };

/// A vocabulary of single symbols: Unicode code points, or bytes. Ids follow the order of code
/// points.
class Tokenizer {
 public:
  /// The 256 bytes; a token is the byte's value.
  static Tokenizer bytes();
  /// The distinct code points of a UTF-8 text. Throws UsageError with the place of the first
  /// invalid byte, or for an empty text.
  static Tokenizer chars_of(std::string_view text);
  /// Reads back what `save` wrote; throws CorruptError or IoError.
  static Tokenizer load(const std::filesystem::path& path);
  /// `where` names the source of the text in messages.
  static Tokenizer parse(std::string_view json, const std::string& where);

  /// docs/formats.md describes the file (JSON). Throws IoError; never leaves a part of a file.
  void save(const std::filesystem::path& path) const;
  std::string to_json() const;

  TokenizerKind kind() const { return kind_; }
  int64_t size() const;

  /// Throws UsageError naming the place and the symbol for text that is not UTF-8 or that the
  /// vocabulary does not have.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The symbol's bytes; 0 <= token < size().
  std::string decode(int32_t token) const;
  /// What a text without a prompt goes on from: a newline, or the first symbol where there is none.
  int32_t start_token() const;

 private:
  Tokenizer() = default;
  explicit Tokenizer(std::vector<char32_t> symbols);

  TokenizerKind kind_ = TokenizerKind::kByte;
  std::vector<char32_t> symbols_;  // of kChar: ascending
  std::vector<int32_t> ids_;       // of kChar: by code point, up to the largest; -1 = none
};

}  // namespace lockstep
