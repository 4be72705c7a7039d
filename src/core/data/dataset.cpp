#include "core/data/dataset.h"

#include <algorithm>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace lockstep {
namespace {

constexpr int64_t kGpt2Vocabulary = 50257;
constexpr int64_t kLlama3Vocabulary = 128256;
// Above this, ids without a vocabulary are taken for GPT-2's: no alphabet is so large.
constexpr int64_t kLargestAlphabet = 32768;

TokenShard open_split(const std::filesystem::path& directory, const char* name) {
  const std::filesystem::path path = directory / name;
  if (!std::filesystem::exists(path)) {
    throw UsageError("{} does not exist; make it with: tokenize --text FILE --kind char --out {}",
                     path.string(), directory.string());
  }
  return TokenShard(path);
}

std::optional<Tokenizer> load_vocabulary(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "vocab.json";
  // Of a link that leads nowhere this is the link itself, which then cannot be opened.
  const bool named = std::filesystem::exists(std::filesystem::symlink_status(path));
  return named ? std::optional(Tokenizer::load(path)) : std::nullopt;
}

void check_length(const TokenShard& split, int64_t block_size) {
  if (split.size() > block_size) {
    return;
  }
  if (split.size() == 0) {
    throw UsageError("{} has no tokens; make it again from a longer text", split.path().string());
  }
  throw UsageError(
      "{} has {} tokens but one sample takes {} (block size {} and one to predict); use a longer "
      "text or --block-size {}",
      split.path().string(), split.size(), block_size + 1, block_size,
      std::max<int64_t>(1, split.size() - 1));
}

void check_ids(const TokenShard& split, int64_t largest_id, int64_t vocabulary) {
  if (largest_id < vocabulary) {
    return;
  }
  const std::optional<int64_t> place = split.first_id_outside(vocabulary);
  throw CorruptError(
      "{}: token {} is outside the vocabulary of {} in vocab.json (the largest id is {}); the two "
      "do not belong together: run tokenize again",
      split.path().string(), place.value_or(0), vocabulary, largest_id);
}

// docs/formats.md states this rule.
int64_t size_without_vocabulary(const TokenShard& train, const TokenShard& val,
                                int64_t largest_id) {
  int64_t size = largest_id + 1;
  for (const TokenShard* split : {&train, &val}) {
    if (split->format() == ShardFormat::kUint32) {
      size = std::max(size, kLlama3Vocabulary);
    } else if (split->format() == ShardFormat::kUint16 || largest_id >= kLargestAlphabet) {
      size = std::max(size, kGpt2Vocabulary);
    }
  }
  return size;
}

std::string digest_all(const TokenShard& train, const TokenShard& val,
                       const std::optional<Tokenizer>& tokenizer) {
  std::string text = train.fingerprint() + '\n' + val.fingerprint() + '\n';
  if (tokenizer) {
    // The symbols, not the file: JSON has many spellings.
    text += tokenizer->kind() == TokenizerKind::kByte ? "byte\n" : "char\n";
    for (int64_t token = 0; token < tokenizer->size(); ++token) {
      text += tokenizer->decode(static_cast<int32_t>(token));
    }
  }
  return digest_hex(bytes_of(text));
}

}  // namespace

Dataset::Dataset(const std::filesystem::path& directory, int64_t block_size)
    : train_(open_split(directory, "train.bin")),
      val_(open_split(directory, "val.bin")),
      tokenizer_(load_vocabulary(directory)) {
  check_length(train_, block_size);
  check_length(val_, block_size);
  const int64_t largest_train = train_.largest_id();
  const int64_t largest_val = val_.largest_id();
  if (tokenizer_) {
    vocab_size_ = tokenizer_->size();
    check_ids(train_, largest_train, vocab_size_);
    check_ids(val_, largest_val, vocab_size_);
  } else {
    vocab_size_ = size_without_vocabulary(train_, val_, std::max(largest_train, largest_val));
  }
  fingerprint_ = digest_all(train_, val_, tokenizer_);
}

}  // namespace lockstep
