// Saving and loading speed beside what the disk does with plain writes of the same bytes.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/command_line.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/run_main.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/checkpoint_store.h"
#include "timing.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

double write_plainly(const fs::path& path, std::span<const float> data) {
  fs::remove(path);
  const auto start = Clock::now();
  const UniqueFd fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  write_all(fd.get(), std::as_bytes(data), path);
  sync_file(fd.get(), path);
  return seconds_since(start);
}

// Of a folder and what is in it, whatever happens.
class Removal {
 public:
  explicit Removal(fs::path folder) : folder_(std::move(folder)) {}
  ~Removal() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  Removal(Removal&&) = delete;
  Removal& operator=(Removal&&) = delete;

 private:
  fs::path folder_;
};

int run(int argc, char** argv) {
  int64_t mebibytes = 1024;
  int64_t repeats = 5;
  std::string folder = ".";
  CommandLine cli("checkpoint_bench", "Times a save and a load beside plain write + fsync.");
  cli.option("--mebibytes", &mebibytes, "Size of the checkpoint").at_least(1).at_most(1 << 20);
  cli.option("--repeats", &repeats, "Rounds; the medians are shown").at_least(1).at_most(1e6);
  cli.option("--folder", &folder, "Where to write; what is written is removed")
      .value_name("FOLDER");
  if (!cli.parse(argc, argv)) {
    return 0;
  }
  std::vector<float> data(static_cast<size_t>(mebibytes) << 18);
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(philox(1, 2, i)[0]);
  }
  const fs::path work = fs::path(folder) / fmt::format("checkpoint_bench_{}", ::getpid());
  const Removal at_the_end(work);
  std::vector<double> plain;
  std::vector<double> save;
  std::vector<double> load;
  {
    CheckpointStore store(work, 1);
    TrainingState state;
    state.model.vocab_size = 65;
    std::vector<float> loaded(data.size());
    for (int64_t round = 0; round < repeats; ++round) {
      plain.push_back(write_plainly(work / "plain", data));
      state.step = round;
      auto start = Clock::now();
      const fs::path place =
          store.save(state, {{"data", {static_cast<int64_t>(data.size())}, data}});
      save.push_back(seconds_since(start));
      start = Clock::now();
      CheckpointReader(place).read([&loaded](const auto& /*tensor*/) { return std::span(loaded); });
      load.push_back(seconds_since(start));
    }
  }
  const double gigabytes = static_cast<double>(data.size() * sizeof(float)) / 1e9;
  fmt::print("{:>24}  {:>8}  {:>8}\n", "", "seconds", "GB/s");
  for (const auto& [name, times] : {std::pair("write + fsync", plain), std::pair("save", save),
                                    std::pair("load (cached)", load)}) {
    fmt::print("{:>24}  {:>8.3f}  {:>8.2f}\n", name, median(times), gigabytes / median(times));
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("checkpoint_bench", lockstep::run, argc, argv);
}
