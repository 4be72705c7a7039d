#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class TokenizerKind : uint8_t { kChar, kByte };

/// A vocabulary of single symbols: Unicode code points, or bytes. Ids follow the order of code
/// points.
class Tokenizer {
 public:
  /// The 256 bytes.
  static Tokenizer bytes();
  /// The distinct code points of a UTF-8 text. Throws UsageError with the offset of the first
  /// invalid byte.
  static Tokenizer chars_of(std::string_view text);
  /// Reads back what `save` wrote; throws CorruptError or IoError.
  static Tokenizer load(const std::filesystem::path& path);
  static Tokenizer parse(std::string_view json, const std::string& where);

  /// docs/formats.md describes the file (JSON).
  void save(const std::filesystem::path& path) const;
  std::string to_json() const;

  TokenizerKind kind() const { return kind_; }
  int64_t size() const;

  /// Throws UsageError naming the offset and the symbol for text that the vocabulary does not have.
  std::vector<int32_t> encode(std::string_view text) const;
  std::string decode(int32_t token) const;  ///< the symbol's bytes

 private:
  TokenizerKind kind_ = TokenizerKind::kByte;
  std::vector<char32_t> symbols_;
  std::map<char32_t, int32_t> ids_;
};

}  // namespace lockstep
