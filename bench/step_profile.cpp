#include "step_profile.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/model/gpt_impl.h"
#include "core/optim/optimizer_impl.h"
#include "profiled_cuda.h"

namespace lockstep {
namespace {

constexpr int kLaunches = 11;

/// Model, optimizer and a batch on the profiled device, and one step of them.
class ProfiledStep {
 public:
  ProfiledStep(CudaStream& stream, const GptConfig& config, const AdamWOptions& adamw,
               int64_t batch)
      : stream_(stream),
        table_(config),
        parameters_(table_.arena_size()),
        gradients_(table_.arena_size()),
        tokens_(batch * config.block_size),
        loss_(1),
        scalars_(1),
        model_(config, batch, config.block_size, parameters_.view(), gradients_.view()),
        optimizer_(stream_, table_, adamw) {
    const std::vector<float> initial = initial_parameters(table_, 1);
    copy_from_host(stream_, parameters_.view(), initial.data());
    std::vector<int32_t> tokens(static_cast<size_t>(tokens_.size()));
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] =
          static_cast<int32_t>(random_bits(1, 0, i) % static_cast<uint64_t>(config.vocab_size));
    }
    copy_from_host(stream_, tokens_.view(), tokens.data());
    const AdamWStep scalars = optimizer_.scalars(0, 1e-5);
    copy_from_host(stream_, scalars_.view(), &scalars);
  }

  /// Seconds by name, the median of several launches of one graph.
  std::map<std::string, ProfiledStream::Total> measure() {
    ProfiledStream warm(stream_.cuda());
    run(warm);
    warm.synchronize();
    CudaGraph graph(stream_.cuda(), [&] { run(stream_); });
    std::map<std::string, std::vector<double>> seconds;
    std::map<std::string, ProfiledStream::Total> totals;
    for (int i = 0; i < kLaunches; ++i) {
      graph.launch(stream_.cuda());
      totals = stream_.totals();
      for (const auto& [name, total] : totals) {
        seconds[name].push_back(total.seconds);
      }
    }
    for (auto& [name, total] : totals) {
      std::vector<double>& all = seconds[name];
      std::nth_element(all.begin(), all.begin() + kLaunches / 2, all.end());
      total.seconds = all[kLaunches / 2];
    }
    return totals;
  }

 private:
  void run(ProfiledStream& stream) {
    const View<ProfiledCuda, const int32_t> tokens = tokens_.view();
    model_.forward(stream, tokens, tokens, 1.0F, loss_.view());
    model_.backward(stream, false, {});
    optimizer_.step(stream, scalars_.view(), parameters_.view(), gradients_.view());
  }

  ProfiledStream stream_;
  ParamTable table_;
  Buffer<ProfiledCuda, float> parameters_;
  Buffer<ProfiledCuda, float> gradients_;
  Buffer<ProfiledCuda, int32_t> tokens_;
  Buffer<ProfiledCuda, float> loss_;
  Buffer<ProfiledCuda, AdamWStep> scalars_;
  Gpt<ProfiledCuda> model_;
  Optimizer<ProfiledCuda> optimizer_;
};

}  // namespace

std::string profile_step(CudaStream& stream, const GptConfig& model, const AdamWOptions& adamw,
                         int64_t batch) {
  using Row = std::pair<std::string, ProfiledStream::Total>;
  const auto totals = ProfiledStep(stream, model, adamw, batch).measure();
  std::vector<Row> rows(totals.begin(), totals.end());
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.second.seconds > b.second.seconds; });
  double seconds = 0;
  for (const auto& [name, total] : rows) {
    seconds += total.seconds;
  }
  std::string text = fmt::format("{:<44}{:>6}{:>10}{:>8}{:>10}{:>10}\n", "op", "calls", "ms",
                                 "share", "TFLOP/s", "GB/s");
  for (const auto& [name, total] : rows) {
    text += fmt::format("{:<44}{:>6}{:>10.4f}{:>7.1f}%{:>10.1f}{:>10.0f}\n", name, total.calls,
                        1e3 * total.seconds, 100 * total.seconds / seconds,
                        1e-12 * total.cost.flops / total.seconds,
                        1e-9 * total.cost.bytes / total.seconds);
  }
  return text + fmt::format("{:<50}{:>10.4f}\n", "all ops", 1e3 * seconds);
}

}  // namespace lockstep
