#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/data/token_shard.h"
#include "core/data/tokenizer.h"

namespace lockstep {

/// A folder with train.bin, val.bin and, when our tokenizer made it, vocab.json.
class Dataset {
 public:
  /// Checks before step 0 what can be checked: both files present, each split longer than one
  /// block, every id of both splits below the vocabulary. Throws UsageError or CorruptError naming
  /// file, place and rule.
  Dataset(const std::filesystem::path& directory, int64_t block_size);

  const TokenShard& train() const { return train_; }
  const TokenShard& val() const { return val_; }
  const std::optional<Tokenizer>& tokenizer() const { return tokenizer_; }
  /// The tokenizer's size; without one, the largest id present + 1, and at least 50257 when llm.c's
  /// GPT-2 header or ids say so.
  int64_t vocab_size() const { return vocab_size_; }
  /// One digest over both shards and the vocabulary.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  TokenShard train_;
  TokenShard val_;
  std::optional<Tokenizer> tokenizer_;
  int64_t vocab_size_ = 0;
  std::string fingerprint_;
};

}  // namespace lockstep
