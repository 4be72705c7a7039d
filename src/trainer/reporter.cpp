#include "trainer/reporter.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/model/param_table.h"

namespace lockstep {
namespace {

/// One rank, or the head of the table. A device on no bus leaves two columns out.
std::string rank_row(const std::string& rank, const std::string& host, const std::string& pid,
                     const DevicePlace& place, const std::string& transport) {
  const std::string bus = place.is_on_bus()
                              ? fmt::format("{:<14} {:>4}  ", place.pci_id, place.numa_node)
                              : std::string();
  return fmt::format("{:>4}  {:<20} {:>8}  {:<24} {}{}", rank, host, pid, place.device, bus,
                     transport);
}

std::string counted(int64_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string schedule_line(const ScheduleTrial::Outcome& trial) {
  const bool beside = trial.chosen == Schedule::kBeside;
  return fmt::format("sums: {} backward; a step takes {:.3f} ms less than with sums {} it",
                     beside ? "beside" : "behind", 1e3 * trial.gain, beside ? "behind" : "beside");
}

/// Whole lines, at once: a person watches through a pipe of mpirun.
void say(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace

Reporter::Reporter(const TrainConfig& config, const RunPlan& plan, int64_t first_step)
    : ranks_(plan.batch.world_size),
      max_steps_(config.max_iters),
      log_interval_(config.log_interval),
      first_step_(first_step),
      tokens_per_step_(plan.batch.global_batch_size() * config.block_size),
      progress_(first_step, config.last_step(), tokens_per_step_),
      metrics_(std::filesystem::path(config.out_dir) / "metrics.jsonl", first_step) {
  if (config.tensorboard) {
    curves_.emplace(config.out_dir, first_step + 1);
  }
}

void Reporter::draw(const StepMetrics& metrics) {
  curves_->scalar("loss/train", metrics.step, metrics.loss);
  if (metrics.val_loss) {
    curves_->scalar("loss/validation", metrics.step, *metrics.val_loss);
  }
  curves_->scalar("optimizer/gradient_norm", metrics.step, metrics.norm);
  curves_->scalar("optimizer/learning_rate", metrics.step, metrics.learning_rate);
  curves_->scalar("speed/tokens_per_second", metrics.step, metrics.tokens_per_second);
  curves_->scalar("speed/comm_exposed_ms", metrics.step, metrics.exposed_milliseconds);
}

void Reporter::step_done(int64_t step, const StepResult& result, double learning_rate,
                         std::optional<double> val_loss) {
  const double seconds = result.seconds;
  const CommTimes& comm = result.comm;
  progress_.step_done(seconds, seconds_since(start_));
  if (result.trial) {
    say(schedule_line(*result.trial));
  }

  StepMetrics metrics;
  metrics.step = step;
  metrics.max_steps = max_steps_;
  metrics.ranks = ranks_;
  metrics.loss = result.loss;
  metrics.val_loss = val_loss;
  metrics.norm = result.norm;
  metrics.learning_rate = learning_rate;
  metrics.milliseconds = 1e3 * seconds;
  metrics.tokens_per_second = progress_.tokens_per_second();
  metrics.comm_milliseconds = 1e3 * comm.total_seconds;
  metrics.exposed_milliseconds = 1e3 * comm.exposed_seconds;
  metrics.seconds_left = progress_.seconds_left();
  metrics_.append(step_json(metrics));
  if (curves_) {
    draw(metrics);
  }

  ++since_line_.steps;
  since_line_.step_seconds += seconds;
  since_line_.comm_seconds += comm.total_seconds;
  since_line_.exposed_seconds += comm.exposed_seconds;
  if (step % log_interval_ == 0 || val_loss || step == first_step_ + 1 || step == max_steps_) {
    // A line stands for the steps since the one before: one step's times are noise.
    const double per_step = 1e3 / static_cast<double>(since_line_.steps);
    metrics.milliseconds = per_step * since_line_.step_seconds;
    metrics.comm_milliseconds = per_step * since_line_.comm_seconds;
    metrics.exposed_milliseconds = per_step * since_line_.exposed_seconds;
    say(step_line(metrics));
    since_line_ = {};
  }
}

void Reporter::sample(const std::string& text) const {
  say(fmt::format("sample:\n{}", text));
}

void Reporter::summary(int64_t step, double val_loss, double best_val_loss) const {
  if (step == first_step_) {
    say(fmt::format("nothing is left to train after step {}: validation loss {:.4f}, best {:.4f}",
                    step, val_loss, best_val_loss));
    return;
  }
  const double seconds = seconds_since(start_);
  const auto tokens = static_cast<double>((step - first_step_) * tokens_per_step_);
  say(fmt::format(
      "trained {} steps in {} ({:.2f} s, evaluation and saving included): {:.0f} tok/s, "
      "validation loss {:.4f}, best {:.4f}",
      step - first_step_, clock_text(seconds), seconds, tokens / seconds, val_loss, best_val_loss));
}

void print_ranks(const Group& group, const DevicePlace& place, const std::string& transport) {
  const PeerInfo& self = group.self();
  const std::vector<std::string> rows = group.bootstrap.all_gather(
      rank_row(std::to_string(self.rank), self.host, std::to_string(self.pid), place, transport));
  if (!group.is_root()) {
    return;
  }
  const DevicePlace head =
      place.is_on_bus() ? DevicePlace{"device", "PCI id", "NUMA"} : DevicePlace{"device"};
  say(rank_row("rank", "host", "pid", head, "transport"));
  for (const std::string& line : rows) {
    say(line);
  }
}

namespace {

void print_shape(const TrainConfig& config, const RunPlan& plan) {
  const GptConfig& model = plan.model;
  say(fmt::format("model: {} layers, {} heads, {} channels, block {}, vocabulary {}: {} parameters",
                  model.n_layer, model.n_head, model.n_embd, model.block_size, model.vocab_size,
                  ParamTable(model).parameter_count()));
  say(fmt::format("batch: {} = {} x {} x {}, {} tokens a step",
                  counted(plan.batch.global_batch_size(), "sequence"), plan.batch.batch_size,
                  counted(plan.batch.world_size, "rank"),
                  counted(plan.batch.accumulation_steps, "accumulation step"),
                  plan.batch.global_batch_size() * model.block_size));
  say(fmt::format("data: {} training and {} validation tokens in {}", plan.dataset.train().size(),
                  plan.dataset.val().size(), config.data_dir));
}

}  // namespace

void print_buckets(const SumCost& cost, int64_t elements) {
  say(fmt::format("buckets: {:.1f} MiB; a sum takes {:.1f} us, and more at {:.2f} GB/s",
                  static_cast<double>(elements) * sizeof(float) / (1 << 20), 1e6 * cost.seconds,
                  1e-9 * cost.bytes_per_second));
}

void print_run(const TrainConfig& config, const RunPlan& plan, int64_t memory_bytes) {
  print_shape(config, plan);
  say(fmt::format("memory: {:.1f} MiB a rank", static_cast<double>(memory_bytes) / (1 << 20)));
}

void print_plan(const Group& group, const TrainConfig& config, const RunPlan& plan,
                const MemorySupply& supply, const std::string& step_time) {
  if (group.is_root()) {
    print_shape(config, plan);
    say(memory_report(plan.shape(), supply));
    say(step_time);
  }
}

}  // namespace lockstep
