#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "comm/communicator.h"
#include "core/base/command_line.h"
#include "core/model/gpt_config.h"
#include "core/optim/lr_schedule.h"
#include "core/optim/optimizer.h"

namespace lockstep {

/// Every option of `trainer`. The defaults are nanoGPT's CPU recipe: a character GPT that two cores
/// train in about a minute. Where 0 stands for "not given" the comment says what follows from.
struct TrainConfig {
  // Model.
  int64_t n_layer = 4;
  int64_t n_head = 4;
  int64_t n_embd = 128;
  int64_t block_size = 64;
  std::string gelu = "tanh";

  // Batch; see plan_batch.
  int64_t batch_size = 0;
  int64_t global_batch_size = 0;
  int64_t gradient_accumulation_steps = 0;

  // Optimisation.
  double learning_rate = 1e-3;
  double min_lr = 1e-4;
  int64_t max_iters = 2000;
  int64_t warmup_iters = 100;
  int64_t lr_decay_iters = 0;  ///< 0: max_iters
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;
  double grad_clip = 1.0;  ///< 0: no clipping
  int64_t seed = 1337;

  // Evaluation and output.
  int64_t eval_interval = 250;  ///< 0: only at the end
  int64_t eval_iters = 20;
  int64_t log_interval = 50;
  bool tensorboard = false;
  int64_t sample_tokens = 500;  ///< 0: no sample
  std::string prompt;           ///< empty: the vocabulary's newline

  // Files.
  std::string data_dir = "data";
  std::string out_dir = "out";
  bool resume = false;
  bool plan = false;
  int64_t stop_at = 0;                ///< 0: max_iters
  int64_t checkpoint_interval = 500;  ///< 0: only at the end
  int64_t keep_checkpoints = 3;       ///< 0: all

  // Machine.
  std::string device = "auto";
  std::string precision = "fp32";
  bool cuda_graph = true;
  bool share_gpu = false;
  int64_t threads = 0;  ///< 0: this rank's share of the cores it may run on
  std::string transport = "auto";
  double bucket_mb = 0;  ///< 0: measured
  bool overlap = true;
  bool copy_engines = false;
  bool shard_optimizer = false;
  double peer_timeout = 0;          ///< seconds; 0: see peer_limit
  double collective_timeout = 120;  ///< seconds
  std::string bind_address;

  // Checks.
  bool verify_reduce = false;
  int64_t check_interval = 100;  ///< 0: never

  /// The architecture for a vocabulary. Throws UsageError when it is none.
  GptConfig model(int64_t vocab_size) const;
  AdamWOptions adamw() const;
  LrSchedule lr_schedule() const;
  /// For a start, whose device is still to be chosen: on any of them.
  ControlOptions control() const;
  /// How long a rank may be silent once the run is on GPUs or CPUs.
  std::chrono::milliseconds peer_limit(bool cuda) const;
  CommunicatorOptions communicator(int64_t window_elements) const;

  /// The step after which this start of the program ends, finished or not.
  int64_t last_step() const { return stop_at == 0 ? max_iters : stop_at; }
  int64_t bucket_elements() const;  ///< 0: to be measured

  /// Checks the rules between options; the command line has checked each alone. Throws UsageError.
  void validate() const;

  /// Option name (as in a configuration file) → value as text.
  std::map<std::string, std::string> options() const;
  /// Those of declare_step_options alone.
  std::map<std::string, std::string> step_options() const;
};

/// Declares every option, with its group and bounds, and the configuration file. `config` must
/// outlive the parsing.
void declare_options(CommandLine& cli, TrainConfig& config);

/// Declares the options that decide what one step computes and how: model, batch, machine.
void declare_step_options(CommandLine& cli, TrainConfig& config);

}  // namespace lockstep
