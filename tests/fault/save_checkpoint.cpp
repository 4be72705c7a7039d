// The program that crash_save.py kills and starves: saves one small checkpoint, or says what an
// output folder holds.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/run_main.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/checkpoint_store.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Large enough that one tensor does not pass through the writer's buffer.
constexpr size_t kElements = 70000;

std::vector<float> data_of(int64_t step, int tensor) {
  std::vector<float> data(kElements);
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(step) + static_cast<float>(tensor) / 8 + static_cast<float>(i);
  }
  return data;
}

// A system call that does nothing and that a trace shows.
void mark(const char* name) {
  [[maybe_unused]] const int absent = ::access(name, F_OK);
}

int save(const fs::path& out_dir, int64_t step, int64_t keep) {
  const std::vector<float> large = data_of(step, 0);
  const std::vector<float> other = data_of(step, 1);
  TrainingState state;
  state.model.vocab_size = 65;
  state.step = step;
  mark("/save-begins");
  CheckpointStore store(out_dir, keep);
  store.save(state, {{"large", {static_cast<int64_t>(large.size())}, large},
                     {"small", {10}, std::span(other).first(10)}});
  mark("/save-ends");
  return 0;
}

bool is_as_saved(const fs::path& folder) {
  try {
    const CheckpointReader reader(folder);
    const int64_t step = reader.state().step;
    const std::vector<float> other = data_of(step, 1);
    return folder.filename() == fmt::format("step_{:08}", step) && reader.tensors().size() == 2 &&
           reader.read_tensor(0) == data_of(step, 0) &&
           reader.read_tensor(1) == std::vector(other.begin(), other.begin() + 10);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return false;
  }
}

std::string join(const std::vector<std::string>& words) {
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ","));
}

// One line about an output folder as a killed process left it, after a new store has cleaned it up:
// the newest checkpoint, the whole ones, the damaged ones, what `latest` says, what is left over,
// and whether a further save and a load succeed.
void report(const fs::path& out_dir) {
  std::string newest = "-";
  {
    const CheckpointStore store(out_dir, 0);
    if (const auto found = store.newest()) {
      newest = found->filename().string();
    }
  }
  std::vector<std::string> whole;
  std::vector<std::string> damaged;
  std::string latest = "-";
  std::vector<std::string> leftovers;
  for (const auto& entry : fs::directory_iterator(out_dir)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step_")) {
      (is_as_saved(entry.path()) ? whole : damaged).push_back(name);
    } else if (name == "latest") {
      latest = read_file(entry.path());
      latest.resize(latest.find_last_not_of('\n') + 1);
    } else {
      leftovers.push_back(name);
    }
  }
  save(out_dir, 999, 0);
  const fs::path next = CheckpointReader(out_dir).path();
  const bool works = next.filename() == "step_00000999" && is_as_saved(next);
  fmt::print("whole={} damaged={} latest={} newest={} leftovers={} next={}\n", join(whole),
             join(damaged), latest, newest, join(leftovers), works ? "works" : "fails");
}

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[0] == "save") {
    return save(words[1], std::stoll(words[2]), std::stoll(words[3]));
  }
  if (words.size() >= 2 && words[0] == "report") {
    std::for_each(words.begin() + 1, words.end(), report);
    return 0;
  }
  throw UsageError("save DIR STEP KEEP | report DIR...");
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("save_checkpoint", lockstep::run, argc, argv);
}
