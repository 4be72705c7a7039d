#include "bench_model.h"

#include "core/base/error.h"

namespace lockstep {

BenchModel bench_model(std::string_view name) {
  if (name == "char-cpu") {
    return {{.vocab_size = 65, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128}, 6};
  }
  if (name == "char") {
    return {{.vocab_size = 65, .block_size = 256, .n_layer = 6, .n_head = 6, .n_embd = 384}, 16};
  }
  if (name == "124m") {
    return {{.vocab_size = 50257, .block_size = 1024, .n_layer = 12, .n_head = 12, .n_embd = 768},
            4};
  }
  throw UsageError("--model {}: the models are char-cpu, char and 124m", name);
}

}  // namespace lockstep
