// Shows, checks and compares checkpoints.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/run_main.h"
#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/state_hash.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int kDifferent = 1;  // as diff(1)

using Row = std::pair<std::string, std::string>;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t dimension : shape) {
    text += fmt::format("{}{}", text.empty() ? "" : "x", dimension);
  }
  return text.empty() ? "scalar" : text;
}

// Every field of a state as text; doubles so that they read back to the same bits.
std::vector<Row> state_rows(const TrainingState& state) {
  const GptConfig& model = state.model;
  return {
      {"step", fmt::format("{}", state.step)},
      {"samples seen", fmt::format("{}", state.samples_seen)},
      {"global batch", fmt::format("{}", state.global_batch)},
      {"train loss", fmt::format("{}", state.train_loss)},
      {"validation loss", fmt::format("{}", state.val_loss)},
      {"best validation loss", fmt::format("{}", state.best_val_loss)},
      {"layers", fmt::format("{}", model.n_layer)},
      {"heads", fmt::format("{}", model.n_head)},
      {"width", fmt::format("{}", model.n_embd)},
      {"context", fmt::format("{}", model.block_size)},
      {"vocabulary", fmt::format("{}", model.vocab_size)},
      {"GELU", std::string(gelu_name(model.gelu))},
      {"precision", state.precision},
      {"seed", fmt::format("{}", state.seed)},
      {"data set", state.dataset_fingerprint},
      {"tokenizer", state.tokenizer_json.empty()
                        ? std::string("none")
                        : fmt::format("{} bytes of JSON", state.tokenizer_json.size())},
      {"ranks", fmt::format("{}", state.world_size)},
      {"device", state.device},
      {"build", state.build_id},
  };
}

void print_rows(const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) {
    width = std::max(width, row.first.size());
  }
  for (const Row& row : rows) {
    fmt::print("  {:<{}}  {}\n", printable(row.first), width, printable(row.second));
  }
}

struct Summary {
  double norm = 0;
  float minimum = 0;
  float maximum = 0;
  size_t non_finite = 0;
};

// Of the finite elements.
Summary summarise(const std::vector<float>& data) {
  Summary summary;
  bool first = true;
  double squares = 0;
  for (const float value : data) {
    if (!std::isfinite(value)) {
      ++summary.non_finite;
      continue;
    }
    squares += static_cast<double>(value) * static_cast<double>(value);
    summary.minimum = first ? value : std::min(summary.minimum, value);
    summary.maximum = first ? value : std::max(summary.maximum, value);
    first = false;
  }
  summary.norm = std::sqrt(squares);
  return summary;
}

void print_tensors(const CheckpointReader& reader) {
  size_t width = 4;
  for (const CheckpointReader::TensorInfo& tensor : reader.tensors()) {
    width = std::max(width, tensor.name.size());
  }
  int64_t elements = 0;
  fmt::print("  {:<{}}  {:>14}  {:>12}  {:>12}  {:>12}\n", "name", width, "shape", "norm",
             "minimum", "maximum");
  for (size_t i = 0; i < reader.tensors().size(); ++i) {
    const CheckpointReader::TensorInfo& tensor = reader.tensors()[i];
    const Summary summary = summarise(reader.read_tensor(i));
    elements += tensor.elements;
    fmt::print("  {:<{}}  {:>14}  {:>12.6g}  {:>12.6g}  {:>12.6g}{}\n", printable(tensor.name),
               width, shape_text(tensor.shape), summary.norm, summary.minimum, summary.maximum,
               summary.non_finite == 0
                   ? std::string()
                   : fmt::format("  {} elements not finite", summary.non_finite));
  }
  fmt::print("  {} tensors, {} elements\n", reader.tensors().size(), elements);
}

int inspect(const std::string& path) {
  const CheckpointReader reader(path);
  fmt::print("{}\n", printable(reader.path().string()));
  print_rows(state_rows(reader.state()));
  fmt::print("options\n");
  print_rows({reader.state().options.begin(), reader.state().options.end()});
  fmt::print("tensors\n");
  print_tensors(reader);
  fmt::print("state hash {}\n", state_hash(reader));
  return static_cast<int>(ExitCode::kDone);
}

// The checkpoints of an output folder, or the one that `path` is.
std::vector<fs::path> checkpoints_of(const std::string& path) {
  std::vector<fs::path> found;
  std::error_code ignored;  // the reader says what is wrong with `path`
  for (fs::directory_iterator it(path, ignored), end; it != end; it.increment(ignored)) {
    if (parse_step_folder_name(it->path().filename().string())) {
      found.push_back(it->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found.empty() ? std::vector<fs::path>{path} : found;
}

int verify(const std::string& path) {
  std::string problems;
  for (const fs::path& folder : checkpoints_of(path)) {
    try {
      const CheckpointReader reader(folder);
      reader.verify();
      fmt::print("{}: whole, step {}, {} tensors\n", printable(folder.string()),
                 reader.state().step, reader.tensors().size());
    } catch (const CorruptError& error) {
      fmt::print("{}: damaged\n", printable(folder.string()));
      problems += fmt::format("{}{}", problems.empty() ? "" : "; ", error.what());
    }
  }
  if (!problems.empty()) {
    throw CorruptError("{}", problems);
  }
  return static_cast<int>(ExitCode::kDone);
}

// Prints the rows that differ; `absent` stands for one that only the other side has.
bool diff_rows(const std::vector<Row>& a, const std::vector<Row>& b) {
  const std::string absent = "(absent)";
  std::map<std::string, std::array<std::string, 2>> both;
  for (const Row& row : a) {
    both[row.first] = {row.second, absent};
  }
  for (const Row& row : b) {
    both.try_emplace(row.first, std::array{absent, absent}).first->second[1] = row.second;
  }
  bool same = true;
  for (const auto& [name, values] : both) {
    if (values[0] != values[1]) {
      same = false;
      fmt::print("  {}: {} | {}\n", printable(name), printable(values[0]), printable(values[1]));
    }
  }
  return same;
}

bool diff_tensor(const std::string& name, const std::vector<float>& a,
                 const std::vector<float>& b) {
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) {
    return true;
  }
  double largest = 0;
  size_t where = 0;
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) {
      continue;
    }
    ++count;
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (difference > largest || std::isnan(difference)) {
      largest = difference;
      where = i;
    }
  }
  fmt::print("  {}: {} of {} elements differ, at most by {:.6g} (element {}: {} | {})\n",
             printable(name), count, a.size(), largest, where, a[where], b[where]);
  return false;
}

bool diff_tensors(const CheckpointReader& a, const CheckpointReader& b) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < b.tensors().size(); ++i) {
    places[b.tensors()[i].name] = i;
  }
  bool same = true;
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const CheckpointReader::TensorInfo& tensor = a.tensors()[i];
    const auto place = places.extract(tensor.name);
    if (place.empty()) {
      fmt::print("  {}: only in the first\n", printable(tensor.name));
      same = false;
    } else if (b.tensors()[place.mapped()].shape != tensor.shape) {
      fmt::print("  {}: {} | {}\n", printable(tensor.name), shape_text(tensor.shape),
                 shape_text(b.tensors()[place.mapped()].shape));
      same = false;
    } else {
      same &= diff_tensor(tensor.name, a.read_tensor(i), b.read_tensor(place.mapped()));
    }
  }
  for (const auto& [name, place] : places) {
    fmt::print("  {}: only in the second\n", printable(name));
    same = false;
  }
  return same;
}

int diff(const std::string& first, const std::string& second) {
  const CheckpointReader a(first);
  const CheckpointReader b(second);
  bool same = diff_rows(state_rows(a.state()), state_rows(b.state()));
  if (a.state().tokenizer_json != b.state().tokenizer_json) {
    fmt::print("  the vocabularies differ\n");
    same = false;
  }
  same &= diff_rows({a.state().options.begin(), a.state().options.end()},
                    {b.state().options.begin(), b.state().options.end()});
  same &= diff_tensors(a, b);
  return same ? static_cast<int>(ExitCode::kDone) : kDifferent;
}

int run(int argc, char** argv) {
  std::string command;
  std::string first;
  std::string second;
  CommandLine cli("checkpoint", "Shows, checks and compares checkpoints.");
  cli.positional("COMMAND", &command, "What to do")
      .required()
      .one_of({"inspect", "verify", "diff"});
  cli.positional("FOLDER", &first,
                 "A checkpoint (step_00001000) or an output folder, whose newest is taken")
      .required();
  cli.positional("OTHER", &second, "The checkpoint to compare with, for diff");
  cli.footer(
      "checkpoint inspect FOLDER     the run's state and options; shape, norm, smallest\n"
      "                              and largest element of each tensor; a hash of all\n"
      "checkpoint verify FOLDER      reads and checks every byte, of an output folder\n"
      "                              those of all its checkpoints; status 4 and the\n"
      "                              place when one is damaged\n"
      "checkpoint diff FOLDER OTHER  what differs; status 0 when nothing does, else 1");
  if (!cli.parse(argc, argv)) {
    return static_cast<int>(ExitCode::kDone);
  }
  if ((command == "diff") == second.empty()) {
    throw UsageError("{}", command == "diff" ? "diff compares two checkpoints"
                                             : "one folder is enough for " + command);
  }
  return command == "inspect"  ? inspect(first)
         : command == "verify" ? verify(first)
                               : diff(first, second);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("checkpoint", lockstep::run, argc, argv);
}
