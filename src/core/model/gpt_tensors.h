#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/gpt_config.h"
#include "core/model/param_table.h"

namespace lockstep {

/// Weight and bias of a linear layer or a LayerNorm.
template <class ArenaView>
struct WeightAndBias {
  ArenaView weight;
  ArenaView bias;
};

/// The tensors of one layer, by role. ArenaView is a view of parameters or of gradients.
template <class ArenaView>
struct BlockTensors {
  WeightAndBias<ArenaView> ln_1;                  ///< (C)
  WeightAndBias<ArenaView> qkv;                   ///< (3C, C)
  WeightAndBias<ArenaView> attention_projection;  ///< (C, C)
  WeightAndBias<ArenaView> ln_2;                  ///< (C)
  WeightAndBias<ArenaView> mlp;                   ///< (4C, C)
  WeightAndBias<ArenaView> mlp_projection;        ///< (C, 4C)
};

/// All tensors of an arena, by role: the one place where the model's tensors meet their names.
template <class ArenaView>
struct GptTensors {
  ArenaView wte;  ///< (padded_vocab, C)
  ArenaView wpe;  ///< (block_size, C)
  std::vector<BlockTensors<ArenaView>> blocks;
  WeightAndBias<ArenaView> ln_f;  ///< (C)

  GptTensors(const ParamTable& table, const GptConfig& config, ArenaView arena) {
    const auto tensor = [&](const std::string& name) {
      return arena.subview(table.find(name).range);
    };
    const auto pair = [&](const std::string& name) {
      return WeightAndBias<ArenaView>{tensor(name + ".weight"), tensor(name + ".bias")};
    };
    wte = tensor("wte");
    wpe = tensor("wpe");
    for (int64_t layer = 0; layer < config.n_layer; ++layer) {
      const auto part = [&](const char* name) { return pair(fmt::format("h.{}.{}", layer, name)); };
      blocks.push_back({.ln_1 = part("ln_1"),
                        .qkv = part("attn.c_attn"),
                        .attention_projection = part("attn.c_proj"),
                        .ln_2 = part("ln_2"),
                        .mlp = part("mlp.c_fc"),
                        .mlp_projection = part("mlp.c_proj")});
    }
    ln_f = pair("ln_f");
  }
};

}  // namespace lockstep
