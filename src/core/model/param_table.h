#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/range.h"
#include "core/model/gpt_config.h"

namespace lockstep {

/// What a parameter tensor is filled with before the first step.
enum class Init : uint8_t { kZero, kOne, kNormal };

/// One parameter tensor. Its meaning is here, in fields: nothing elsewhere asks for its index or
/// parses its name.
struct ParamSpec {
  std::string name;            ///< "wte", "h.3.attn.c_attn.weight", …: GPT-2's names
  std::vector<int64_t> shape;  ///< weights are (out, in)
  Range range;                 ///< elements of the arena
  bool decay = false;          ///< weight decay applies: matrices and embeddings
  Init init = Init::kZero;
  float stddev = 0;  ///< of Init::kNormal
  /// Leading elements that init fills; the rest (vocabulary padding) stays zero.
  int64_t init_size = 0;
};

/// The parameter arena's layout: wte wpe | layer 0 … L-1 | ln_f. Backward completes a suffix that
/// grows downward, so the gradients of one layer are one contiguous range. Tensors start at
/// multiples of 64 elements (256 bytes); the gaps hold zeros for ever.
class ParamTable {
 public:
  explicit ParamTable(const GptConfig& config);

  const std::vector<ParamSpec>& specs() const { return specs_; }
  /// Throws InternalError when there is none of this name.
  const ParamSpec& find(const std::string& name) const;

  /// Elements, gaps included.
  int64_t arena_size() const { return arena_size_; }
  /// Elements without gaps and padding, as papers count.
  int64_t parameter_count() const { return parameter_count_; }

  Range embeddings() const { return embeddings_; }
  Range layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }
  Range final_norm() const { return final_norm_; }

 private:
  std::vector<ParamSpec> specs_;
  std::vector<Range> layers_;
  Range embeddings_;
  Range final_norm_;
  int64_t arena_size_ = 0;
  int64_t parameter_count_ = 0;
};

/// The value of element `index` of a tensor before the first step: a pure function of (seed,
/// tensor, index), so that every rank and device starts from the same bits.
float initial_value(const ParamSpec& spec, uint64_t seed, int64_t tensor, int64_t index);

/// All initial parameters, laid out as the arena.
std::vector<float> initial_parameters(const ParamTable& table, uint64_t seed);

}  // namespace lockstep
