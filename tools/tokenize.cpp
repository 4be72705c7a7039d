// tokenize: turns a text into token shards and a vocabulary for the trainer.

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/run_main.h"
#include "core/data/token_shard_writer.h"
#include "core/data/tokenizer.h"
#include "core/data/utf8.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20U;
constexpr int64_t kLeastTokens = 2;  // an input and a target

struct Options {
  std::string text;
  std::string kind = "char";
  std::string out;
  double val_fraction = 0.1;
};

// The byte at which symbol number `symbol` of a text starts.
size_t byte_of_symbol(std::string_view text, TokenizerKind kind, int64_t symbol) {
  if (kind == TokenizerKind::kByte) {
    return static_cast<size_t>(symbol);
  }
  size_t offset = 0;
  for (; symbol > 0; --symbol) {
    offset += decode_utf8(text, offset).length;
  }
  return offset;
}

// Encodes piece by piece, so that memory does not grow with the text.
void append_text(const Tokenizer& tokenizer, std::string_view text, TokenShardWriter* writer) {
  while (!text.empty()) {
    size_t end = std::min(kPieceBytes, text.size());
    if (tokenizer.kind() == TokenizerKind::kChar) {
      end = next_code_point(text, end);
    }
    writer->append(tokenizer.encode(text.substr(0, end)));
    text.remove_prefix(end);
  }
}

void make_folder(const fs::path& directory) {
  std::error_code reason;
  fs::create_directories(directory, reason);
  if (reason) {
    throw IoError("cannot create the folder {}: {}", directory.string(), reason.message());
  }
}

// Of the symbols of `text`, which is what the file holds.
Tokenizer tokenizer_of(const std::string& file, std::string_view text) {
  try {
    return Tokenizer::chars_of(text);
  } catch (const UsageError& error) {
    throw UsageError("--text {}: {}", file, error.what());
  }
}

int tokenize(const Options& options) {
  const MappedFile file{fs::path(options.text)};
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  if (text.empty()) {
    throw UsageError("--text {}: the file is empty", options.text);
  }
  const bool chars = options.kind == "char";
  const Tokenizer tokenizer = chars ? tokenizer_of(options.text, text) : Tokenizer::bytes();
  const int64_t symbols = chars ? count_code_points(text) : static_cast<int64_t>(text.size());
  const auto train_symbols =
      static_cast<int64_t>(static_cast<double>(symbols) * (1.0 - options.val_fraction));
  if (std::min(train_symbols, symbols - train_symbols) < kLeastTokens) {
    throw UsageError(
        "--text {}: {} tokens with --val-fraction {} leave {} for training and {} for validation; "
        "each needs at least {}",
        options.text, symbols, options.val_fraction, train_symbols, symbols - train_symbols,
        kLeastTokens);
  }
  const size_t cut = byte_of_symbol(text, tokenizer.kind(), train_symbols);

  const fs::path out = options.out;
  make_folder(out);
  TokenShardWriter train(out / "train.bin", tokenizer.size());
  TokenShardWriter val(out / "val.bin", tokenizer.size());
  append_text(tokenizer, text.substr(0, cut), &train);
  append_text(tokenizer, text.substr(cut), &val);
  train.finish();
  val.finish();
  tokenizer.save(out / "vocab.json");

  fmt::print("vocabulary  {} symbols ({})  {}\n", tokenizer.size(), options.kind,
             (out / "vocab.json").string());
  fmt::print("train       {} tokens  {}\n", train.size(), (out / "train.bin").string());
  fmt::print("val         {} tokens  {}\n", val.size(), (out / "val.bin").string());
  if (train.format() == ShardFormat::kUint32) {
    fmt::print("ids do not fit 16 bits: the shards are uint32\n");
  }
  return static_cast<int>(ExitCode::kDone);
}

int run(int argc, char** argv) {
  Options options;
  CommandLine cli("tokenize", "Turns a text into token shards and a vocabulary for the trainer.");
  cli.option("--text", &options.text, "The text, in UTF-8").required().value_name("FILE");
  cli.option("--kind", &options.kind, "A token is a UTF-8 character or a byte")
      .one_of({"char", "byte"});
  cli.option("--out", &options.out, "Folder for train.bin, val.bin and vocab.json")
      .required()
      .value_name("FOLDER");
  cli.option("--val-fraction", &options.val_fraction, "Share of the text's end for validation")
      .greater_than(0)
      .less_than(1);
  return cli.parse(argc, argv) ? tokenize(options) : static_cast<int>(ExitCode::kDone);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("tokenize", lockstep::run, argc, argv);
}
