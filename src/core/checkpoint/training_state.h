#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/model/gpt_config.h"

namespace lockstep {

/// Everything about a run besides its tensors that a later run needs or a person wants to read.
struct TrainingState {
  GptConfig model;
  int64_t step = 0;          ///< optimizer steps done
  uint64_t seed = 0;         ///< of data order and initialisation: there is no other random state
  int64_t samples_seen = 0;  ///< the data cursor: global samples consumed
  int64_t global_batch = 0;
  double train_loss = 0;
  double val_loss = 0;       ///< NaN before the first evaluation
  double best_val_loss = 0;  ///< NaN before the first evaluation
  int world_size = 1;        ///< ranks that wrote it; it loads at any number
  std::string device;
  std::string precision;
  std::string build_id;
  std::string dataset_fingerprint;
  std::string tokenizer_json;                  ///< empty when the data came without a vocabulary
  std::map<std::string, std::string> options;  ///< the run's options as text, to read and to diff
};

/// One named tensor of a checkpoint, in host memory that the caller owns.
struct NamedTensor {
  std::string name;  ///< "parameters/wte", "adam_m/h.0.ln_1.weight", …
  std::vector<int64_t> shape;
  std::span<const float> data;
};

}  // namespace lockstep
