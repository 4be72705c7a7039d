// sample: writes text with a trained model, symbol by symbol.

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/run_main.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/data/tokenizer.h"
#include "core/data/utf8_stream.h"
#include "core/device/cpu_device.h"
#include "core/model/generate.h"
#include "core/model/param_table.h"

namespace lockstep {
namespace {

constexpr int64_t kGpt2Vocabulary = 50257;
constexpr int32_t kGpt2EndOfText = 50256;
constexpr int64_t kMostDraws = 1'000'000'000;  // of a sample, which has 2^32 numbers for them

struct Options {
  std::string checkpoint;
  std::string prompt;
  bool has_prompt = false;
  SamplingOptions sampling;
  int64_t samples = 1;
  int64_t length = 500;
  int64_t threads = 0;
};

CpuBuffer<float> load_parameters(const CheckpointReader& checkpoint) {
  constexpr std::string_view kPrefix = "parameters/";
  const ParamTable table(checkpoint.state().model);
  std::map<std::string, int64_t> elements;
  for (const ParamSpec& spec : table.specs()) {
    elements[std::string(kPrefix) + spec.name] = spec.range.size();
  }
  checkpoint.check_tensors(kPrefix, elements);
  CpuBuffer<float> arena(table.arena_size());
  std::map<std::string, std::span<float>> memory;
  for (const ParamSpec& spec : table.specs()) {
    const CpuView<float> view = arena.view().subview(spec.range);
    memory[std::string(kPrefix) + spec.name] = {view.data(), static_cast<size_t>(view.size())};
  }
  checkpoint.load(kPrefix, memory);
  return arena;
}

std::optional<Tokenizer> load_tokenizer(const CheckpointReader& checkpoint) {
  const TrainingState& state = checkpoint.state();
  if (state.tokenizer_json.empty()) {
    return std::nullopt;
  }
  Tokenizer tokenizer =
      Tokenizer::parse(state.tokenizer_json, checkpoint.path().string() + ": vocabulary");
  if (tokenizer.size() != state.model.vocab_size) {
    throw CorruptError("{}: {} symbols in the vocabulary but {} in the model",
                       checkpoint.path().string(), tokenizer.size(), state.model.vocab_size);
  }
  return tokenizer;
}

// The prompt of a model without a vocabulary: ids with spaces between them.
std::vector<int32_t> parse_ids(const std::string& prompt, int64_t vocabulary) {
  std::vector<int32_t> ids;
  std::istringstream words(prompt);
  for (std::string word; words >> word;) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0 || id >= vocabulary) {
      throw UsageError(
          "--prompt: '{}' is not a token id below {}; the model has no vocabulary, so its prompt "
          "is a list of ids",
          word, vocabulary);
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<int32_t> prompt_tokens(const Options& options, const GptConfig& model,
                                   const std::optional<Tokenizer>& tokenizer) {
  std::vector<int32_t> tokens;
  if (options.has_prompt) {
    tokens =
        tokenizer ? tokenizer->encode(options.prompt) : parse_ids(options.prompt, model.vocab_size);
  }
  if (tokens.empty()) {
    const int32_t without_vocabulary = model.vocab_size == kGpt2Vocabulary ? kGpt2EndOfText : 0;
    tokens.push_back(tokenizer ? tokenizer->start_token() : without_vocabulary);
  }
  return tokens;
}

// Shows what is there now: a reader follows the text as it grows.
void show(const std::string& text) {
  if (!text.empty() && (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
                        std::fflush(stdout) != 0)) {
    throw IoError("cannot write standard output");
  }
}

int sample(const Options& options) {
  const CheckpointReader checkpoint(options.checkpoint);
  const GptConfig& model = checkpoint.state().model;
  const std::optional<Tokenizer> tokenizer = load_tokenizer(checkpoint);
  const std::vector<int32_t> prompt = prompt_tokens(options, model, tokenizer);
  const CpuBuffer<float> parameters = load_parameters(checkpoint);
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  CpuStream stream(
      static_cast<int>(std::max<int64_t>(1, options.threads > 0 ? options.threads : cores)));

  for (int64_t number = 0; number < options.samples; ++number) {
    show(number > 0 ? "---------------\n" : "");
    Utf8Stream text;
    const auto emit = [&](int32_t token) {
      show(tokenizer ? text.feed(tokenizer->decode(token)) : fmt::format("{} ", token));
    };
    if (options.has_prompt) {
      std::for_each(prompt.begin(), prompt.end(), emit);
    }
    // Draws of a sample are numbered apart from those of the others.
    generate<CpuDevice>(stream, model, parameters.view(), prompt, options.length, options.sampling,
                        static_cast<uint64_t>(number) << 32U, emit);
    show(text.finish() + '\n');
  }
  return static_cast<int>(ExitCode::kDone);
}

int run(int argc, char** argv) {
  Options options;
  auto seed = static_cast<int64_t>(options.sampling.seed);
  CommandLine cli("sample", "Writes text with a trained model.");
  cli.option("--checkpoint", &options.checkpoint,
             "A checkpoint, or a run's folder: then its newest one")
      .required()
      .value_name("FOLDER");
  cli.option("--prompt", &options.prompt,
             "Text to go on from, by default a newline; token ids for a model without vocabulary");
  cli.option("--temperature", &options.sampling.temperature,
             "Below 1 safer, above 1 wilder; 0: always the most likely symbol")
      .at_least(0);
  cli.option("--top-k", &options.sampling.top_k, "Draw among the k most likely symbols")
      .at_least(1);
  cli.option("--seed", &seed, "The same seed gives the same text").at_least(0);
  cli.option("--num-samples", &options.samples, "How many texts").at_least(1).at_most(kMostDraws);
  cli.option("--max-new-tokens", &options.length, "Length of a text in symbols")
      .at_least(1)
      .at_most(kMostDraws);
  cli.option("--threads", &options.threads, "CPU threads; 0: one for each core")
      .at_least(0)
      .at_most(kMostThreads);
  if (!cli.parse(argc, argv)) {
    return static_cast<int>(ExitCode::kDone);
  }
  options.sampling.seed = static_cast<uint64_t>(seed);
  options.has_prompt = cli.given("--prompt");
  return sample(options);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("sample", lockstep::run, argc, argv);
}
