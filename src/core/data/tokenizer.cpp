#include "core/data/tokenizer.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/utf8.h"
#include "vocabulary.pb.h"

namespace lockstep {
namespace {

constexpr std::string_view kFormat = "lockstep-vocabulary";
constexpr int32_t kVersion = 1;
constexpr char32_t kCodePoints = 0x110000;

[[noreturn]] void throw_not_utf8(std::string_view text, size_t offset) {
  throw UsageError(
      "the text is not UTF-8 at {}: 0x{:02x}; convert it, or read it as bytes (tokenize --kind "
      "byte)",
      describe_place(text, offset), static_cast<unsigned char>(text[offset]));
}

// 'x' (U+0078), without the letter where it would disturb the line.
std::string describe_symbol(char32_t symbol) {
  const bool shown = symbol > 0x20 && (symbol < 0x7f || symbol > 0xa0);
  return shown ? fmt::format("'{}' (U+{:04X})", encode_utf8(symbol), static_cast<uint32_t>(symbol))
               : fmt::format("U+{:04X}", static_cast<uint32_t>(symbol));
}

std::vector<char32_t> read_symbols(const proto::Vocabulary& vocabulary, const std::string& where) {
  std::vector<char32_t> symbols;
  for (const std::string& symbol : vocabulary.symbols()) {
    const CodePoint point = symbol.empty() ? CodePoint{} : decode_utf8(symbol, 0);
    if (point.length == 0 || point.length != symbol.size()) {
      throw CorruptError("{}: symbol {} is not one code point", where, symbols.size());
    }
    if (!symbols.empty() && point.value <= symbols.back()) {
      throw CorruptError("{}: symbol {}, {}, is not above the one before it", where, symbols.size(),
                         describe_symbol(point.value));
    }
    symbols.push_back(point.value);
  }
  return symbols;
}

}  // namespace

Tokenizer::Tokenizer(std::vector<char32_t> symbols)
    : kind_(TokenizerKind::kChar), symbols_(std::move(symbols)), ids_(symbols_.back() + 1, -1) {
  for (size_t id = 0; id < symbols_.size(); ++id) {
    ids_[symbols_[id]] = static_cast<int32_t>(id);
  }
}

Tokenizer Tokenizer::bytes() {
  return Tokenizer();
}

Tokenizer Tokenizer::chars_of(std::string_view text) {
  if (text.empty()) {
    throw UsageError("the text is empty");
  }
  std::vector<char> present(kCodePoints, 0);
  for (size_t offset = 0; offset < text.size();) {
    const CodePoint point = decode_utf8(text, offset);
    if (point.length == 0) {
      throw_not_utf8(text, offset);
    }
    present[point.value] = 1;
    offset += point.length;
  }
  std::vector<char32_t> symbols;
  for (char32_t symbol = 0; symbol < kCodePoints; ++symbol) {
    if (present[symbol] != 0) {
      symbols.push_back(symbol);
    }
  }
  return Tokenizer(std::move(symbols));
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  return parse({text, file.bytes().size()}, path.string());
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& where) {
  proto::Vocabulary vocabulary;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &vocabulary);
  if (!status.ok()) {
    // The parser's message goes on with a picture of the place, over several lines.
    const std::string message = status.message().ToString();
    throw CorruptError("{}: not a vocabulary ({}); run tokenize again", where,
                       message.substr(0, message.find_first_of(".\n")));
  }
  if (vocabulary.format() != kFormat) {
    throw CorruptError("{}: not a vocabulary: its \"format\" is '{}', not '{}'", where,
                       vocabulary.format(), kFormat);
  }
  if (vocabulary.version() != kVersion) {
    throw CorruptError("{}: version {} of the vocabulary format; this build reads version {}",
                       where, vocabulary.version(), kVersion);
  }
  if (vocabulary.kind() == "byte" && vocabulary.symbols().empty()) {
    return bytes();
  }
  if (vocabulary.kind() == "char" && !vocabulary.symbols().empty()) {
    return Tokenizer(read_symbols(vocabulary, where));
  }
  throw CorruptError("{}: kind '{}' with {} symbols; it must be char with symbols or byte without",
                     where, vocabulary.kind(), vocabulary.symbols_size());
}

void Tokenizer::save(const std::filesystem::path& path) const {
  replace_file(path, to_json());
}

std::string Tokenizer::to_json() const {
  proto::Vocabulary vocabulary;
  vocabulary.set_format(std::string(kFormat));
  vocabulary.set_version(kVersion);
  vocabulary.set_kind(kind_ == TokenizerKind::kByte ? "byte" : "char");
  for (const char32_t symbol : symbols_) {
    vocabulary.add_symbols(encode_utf8(symbol));
  }
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(vocabulary, &json);
  LOCKSTEP_CHECK(status.ok(), "{}", status.message().ToString());
  return json + '\n';
}

int64_t Tokenizer::size() const {
  return kind_ == TokenizerKind::kByte ? 256 : static_cast<int64_t>(symbols_.size());
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  tokens.reserve(text.size());
  if (kind_ == TokenizerKind::kByte) {
    std::transform(text.begin(), text.end(), std::back_inserter(tokens),
                   [](char byte) { return static_cast<unsigned char>(byte); });
    return tokens;
  }
  for (size_t offset = 0; offset < text.size();) {
    const CodePoint point = decode_utf8(text, offset);
    if (point.length == 0) {
      throw_not_utf8(text, offset);
    }
    const int32_t id = point.value < ids_.size() ? ids_[point.value] : -1;
    if (id < 0) {
      throw UsageError("the vocabulary of {} symbols has no {}, at {} of the text", size(),
                       describe_symbol(point.value), describe_place(text, offset));
    }
    tokens.push_back(id);
    offset += point.length;
  }
  return tokens;
}

std::string Tokenizer::decode(int32_t token) const {
  LOCKSTEP_CHECK(token >= 0 && token < size(), "token {} of a vocabulary of {}", token, size());
  if (kind_ == TokenizerKind::kByte) {
    return {static_cast<char>(token)};
  }
  return encode_utf8(symbols_[static_cast<size_t>(token)]);
}

int32_t Tokenizer::start_token() const {
  if (kind_ == TokenizerKind::kByte) {
    return '\n';
  }
  return ids_.size() > '\n' ? std::max(0, ids_['\n']) : 0;
}

}  // namespace lockstep
