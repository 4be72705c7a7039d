// Measures causal attention on a GPU, forward and backward, in each of its implementations.
#include <charconv>

#include "attention_bench_cuda.h"
#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/run_main.h"

namespace lockstep {
namespace {

constexpr int64_t kMostSize = 1 << 20;               // of each number of a shape
constexpr int64_t kMostElements = int64_t{1} << 36;  // of a tensor: more than any GPU holds

struct Options {
  std::vector<std::string> shapes;
  std::string json;
  double seconds = 0.3;
};

// char GPT at three contexts, GPT-2 small's batch, and a long context.
constexpr AttentionShape kShapes[] = {
    {16, 256, 6, 64}, {16, 1024, 6, 64}, {16, 2048, 6, 64}, {32, 1024, 12, 64}, {8, 4096, 12, 64}};

std::vector<AttentionShape> shapes_of(const Options& options) {
  if (options.shapes.empty()) {
    return {std::begin(kShapes), std::end(kShapes)};
  }
  if (options.shapes.size() % 4 != 0) {
    throw UsageError("--shape takes four numbers, B,H,T,D; got {}", options.shapes.size());
  }
  std::vector<AttentionShape> shapes;
  for (size_t i = 0; i < options.shapes.size(); i += 4) {
    int64_t size[4] = {};
    for (size_t j = 0; j < 4; ++j) {
      const std::string& word = options.shapes[i + j];
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size[j]);
      if (error != std::errc() || end != word.data() + word.size() || size[j] < 1 ||
          size[j] > kMostSize) {
        throw UsageError("--shape: '{}' is no whole number from 1 to {}", word, kMostSize);
      }
    }
    if (size[0] * size[1] > kMostElements / (size[2] * size[3])) {
      throw UsageError("--shape {},{},{},{}: a tensor has at most {} elements", size[0], size[1],
                       size[2], size[3], kMostElements);
    }
    shapes.push_back({.batch = size[0], .time = size[2], .heads = size[1], .head_dim = size[3]});
  }
  return shapes;
}

int run(int argc, char** argv) {
  Options options;
  CommandLine cli("attention_bench", "Measures causal attention on the GPU.");
  cli.option("--shape", &options.shapes,
             "A shape B,H,T,D (sequences, heads, positions, elements of a head); may be given "
             "again. Without it, five of models");
  cli.option("--seconds", &options.seconds, "Time for each shape").greater_than(0).at_most(1e6);
  cli.option("--json", &options.json, "Write the figures to this file").value_name("FILE");
  cli.footer(
      "Times are medians over replays of CUDA graphs, the implementations in turns. TFLOP/s count "
      "the products under the diagonal alone: two of T x T x D / 2 forward, five backward. Memory "
      "is what a training step keeps for one layer (out and lse) and an implementation's scratch. "
      "UNPINNED says that the SM clock was not locked or moved.");
  if (cli.parse(argc, argv)) {
    if (!options.json.empty()) {
      check_replaceable(options.json);
    }
    run_attention_bench(
        {.shapes = shapes_of(options), .seconds = options.seconds, .json = options.json});
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("attention_bench", lockstep::run, argc, argv);
}
