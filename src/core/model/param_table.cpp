#include "core/model/param_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/model/alignment.h"

namespace lockstep {
namespace {

constexpr float kInitStddev = 0.02F;                  // GPT-2's
constexpr int64_t kPieceElements = int64_t{1} << 20;  // a multiple of a draw's four

int64_t elements_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// Appends tensors one after the other, each at the next aligned element.
class Layout {
 public:
  int64_t end() const { return end_; }
  std::vector<ParamSpec> take() && { return std::move(specs_); }

  void matrix(std::string name, std::vector<int64_t> shape, float stddev) {
    add({.name = std::move(name),
         .shape = std::move(shape),
         .range = {},
         .decay = true,
         .init = Init::kNormal,
         .stddev = stddev});
  }
  void vector(std::string name, int64_t size, Init init) {
    add({.name = std::move(name), .shape = {size}, .range = {}, .init = init});
  }
  /// Takes the last tensor's rows from `rows` on as padding.
  void pad_from_row(int64_t rows) {
    ParamSpec& spec = specs_.back();
    spec.init_size = rows * spec.shape.back();
  }

 private:
  void add(ParamSpec spec) {
    const int64_t size = elements_of(spec.shape);
    spec.range = {end_, end_ + size};
    spec.init_size = size;
    end_ = align_tensor(spec.range.end);
    specs_.push_back(std::move(spec));
  }

  std::vector<ParamSpec> specs_;
  int64_t end_ = 0;
};

/// Matrices before vectors: tensors of one decay setting are neighbours.
void add_layer(Layout& layout, const GptConfig& config, int64_t layer) {
  const int64_t c = config.n_embd;
  // The residual stream sums 2 n_layer branches; GPT-2 keeps its variance by scaling their last
  // projections.
  const auto residual_stddev =
      static_cast<float>(kInitStddev / std::sqrt(2.0 * static_cast<double>(config.n_layer)));
  const auto name = [layer](const char* tensor) { return fmt::format("h.{}.{}", layer, tensor); };
  layout.matrix(name("attn.c_attn.weight"), {3 * c, c}, kInitStddev);
  layout.matrix(name("attn.c_proj.weight"), {c, c}, residual_stddev);
  layout.matrix(name("mlp.c_fc.weight"), {4 * c, c}, kInitStddev);
  layout.matrix(name("mlp.c_proj.weight"), {c, 4 * c}, residual_stddev);
  layout.vector(name("ln_1.weight"), c, Init::kOne);
  layout.vector(name("ln_1.bias"), c, Init::kZero);
  layout.vector(name("attn.c_attn.bias"), 3 * c, Init::kZero);
  layout.vector(name("attn.c_proj.bias"), c, Init::kZero);
  layout.vector(name("ln_2.weight"), c, Init::kOne);
  layout.vector(name("ln_2.bias"), c, Init::kZero);
  layout.vector(name("mlp.c_fc.bias"), 4 * c, Init::kZero);
  layout.vector(name("mlp.c_proj.bias"), c, Init::kZero);
}

/// A piece of one tensor: the unit of work of a thread.
struct Piece {
  const ParamSpec* spec;
  int64_t tensor;
  Range elements;  ///< of the tensor
};

std::vector<Piece> pieces_of(const ParamTable& table) {
  std::vector<Piece> pieces;
  int64_t tensor = 0;
  for (const ParamSpec& spec : table.specs()) {
    if (spec.init != Init::kZero) {
      for (int64_t begin = 0; begin < spec.init_size; begin += kPieceElements) {
        pieces.push_back(
            {&spec, tensor, {begin, std::min(begin + kPieceElements, spec.init_size)}});
      }
    }
    ++tensor;
  }
  return pieces;
}

/// What initial_value gives element by element, with one draw for four elements.
void fill_normal(const Piece& piece, uint64_t seed, float* tensor) {
  for (int64_t first = piece.elements.begin; first < piece.elements.end; first += 4) {
    const auto draw =
        random_normals(seed, static_cast<uint64_t>(piece.tensor), static_cast<uint64_t>(first / 4));
    const int64_t count = std::min<int64_t>(4, piece.elements.end - first);
    for (int64_t i = 0; i < count; ++i) {
      tensor[first + i] = static_cast<float>(piece.spec->stddev * draw[static_cast<size_t>(i)]);
    }
  }
}

void fill(const Piece& piece, uint64_t seed, float* tensor) {
  if (piece.spec->init == Init::kNormal) {
    fill_normal(piece, seed, tensor);
    return;
  }
  std::fill(tensor + piece.elements.begin, tensor + piece.elements.end,
            initial_value(*piece.spec, seed, piece.tensor, piece.elements.begin));
}

}  // namespace

ParamTable::ParamTable(const GptConfig& config) {
  config.validate();
  Layout layout;
  layout.matrix("wte", {config.padded_vocab(), config.n_embd}, kInitStddev);
  layout.pad_from_row(config.vocab_size);
  layout.matrix("wpe", {config.block_size, config.n_embd}, kInitStddev);
  embeddings_ = {0, layout.end()};
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    const int64_t begin = layout.end();
    add_layer(layout, config, layer);
    layers_.push_back({begin, layout.end()});
  }
  const int64_t begin = layout.end();
  layout.vector("ln_f.weight", config.n_embd, Init::kOne);
  layout.vector("ln_f.bias", config.n_embd, Init::kZero);
  final_norm_ = {begin, layout.end()};
  arena_size_ = layout.end();
  specs_ = std::move(layout).take();
  for (const ParamSpec& spec : specs_) {
    parameter_count_ += spec.init_size;
  }
}

const ParamSpec& ParamTable::find(const std::string& name) const {
  const auto found = std::find_if(specs_.begin(), specs_.end(),
                                  [&](const ParamSpec& spec) { return spec.name == name; });
  if (found == specs_.end()) {
    throw InternalError("there is no parameter tensor '{}'", name);
  }
  return *found;
}

float initial_value(const ParamSpec& spec, uint64_t seed, int64_t tensor, int64_t index) {
  if (index >= spec.init_size) {
    return 0.0F;
  }
  switch (spec.init) {
    case Init::kZero:
      return 0.0F;
    case Init::kOne:
      return 1.0F;
    case Init::kNormal:
      return static_cast<float>(
          spec.stddev *
          random_normals(seed, static_cast<uint64_t>(tensor),
                         static_cast<uint64_t>(index / 4))[static_cast<size_t>(index % 4)]);
  }
  return 0.0F;
}

std::vector<float> initial_parameters(const ParamTable& table, uint64_t seed) {
  std::vector<float> arena(static_cast<size_t>(table.arena_size()));
  const std::vector<Piece> pieces = pieces_of(table);
  const auto fill_every = [&](size_t stride, size_t first) {
    for (size_t i = first; i < pieces.size(); i += stride) {
      fill(pieces[i], seed, arena.data() + pieces[i].spec->range.begin);
    }
  };
  const size_t threads =
      std::min<size_t>(std::max(1U, std::thread::hardware_concurrency()), pieces.size());
  std::vector<std::jthread> others;
  for (size_t t = 1; t < threads; ++t) {
    others.emplace_back(fill_every, threads, t);
  }
  fill_every(threads, 0);
  others.clear();  // joins
  return arena;
}

}  // namespace lockstep
