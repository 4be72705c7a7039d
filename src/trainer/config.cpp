#include "trainer/config.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "comm/transport_select.h"
#include "core/base/error.h"
#include "trainer/batch_plan.h"
#include "trainer/evaluation.h"

namespace lockstep {
namespace {

constexpr double kElementsPerMib = 1048576.0 / sizeof(float);

// Bounds far beyond any use. Below them no sum or product of options leaves 64 bits: a run sees at
// most kMostSteps x kMostSequences = 1e18 samples.
constexpr int64_t kMostSteps = 1'000'000'000;
constexpr double kMostRate = 1e38;  // of fp32
constexpr double kLeastRate = 1e-30;
// Closer to 1, fp32 is several thousandths off what is left to 1, and soon is 1.
constexpr double kMostBeta = 0.99999;
constexpr double kMostMib = 1e6;
constexpr double kMostSeconds = 1e6;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// Each of these goes once over a group of options; both the command line and the text form are made
// from them.

template <class Sink, class Config>
void for_each_model_option(Sink& sink, Config& c) {
  sink.group("Model");
  sink.add("--n-layer", &c.n_layer, "Layers").at_least(1).at_most(GptConfig::kMostLayers);
  sink.add("--n-head", &c.n_head, "Attention heads per layer; divides --n-embd")
      .at_least(1)
      .at_most(GptConfig::kMostHeads);
  sink.add("--n-embd", &c.n_embd, "Channels").at_least(1).at_most(GptConfig::kMostChannels);
  sink.add("--block-size", &c.block_size, "Tokens of context")
      .at_least(1)
      .at_most(GptConfig::kMostContext);
  sink.add("--gelu", &c.gelu, "Form of GELU: tanh as GPT-2 and llm.c, erf as nanoGPT")
      .one_of({"tanh", "erf"});
}

template <class Sink, class Config>
void for_each_batch_option(Sink& sink, Config& c) {
  sink.group("Batch");
  sink.add("--batch-size", &c.batch_size, "Sequences per rank and micro-step; 0: from the others")
      .at_least(0)
      .at_most(kMostSequences);
  sink.add("--global-batch-size", &c.global_batch_size,
           "Sequences per step over all ranks; 0: batch size x accumulation x ranks, or 12")
      .at_least(0)
      .at_most(kMostSequences);
  sink.add("--gradient-accumulation-steps", &c.gradient_accumulation_steps,
           "Micro-steps per step on each rank; 0: from the batch sizes, or 1")
      .at_least(0)
      .at_most(kMostSequences);
}

template <class Sink, class Config>
void for_each_optimisation_option(Sink& sink, Config& c) {
  sink.group("Optimisation");
  sink.add("--learning-rate", &c.learning_rate, "Peak learning rate")
      .at_least(kLeastRate)
      .at_most(kMostRate);
  sink.add("--min-lr", &c.min_lr, "Learning rate at the end of the decay").at_least(0);
  sink.add("--max-iters", &c.max_iters, "Steps to train").at_least(1).at_most(kMostSteps);
  sink.add("--warmup-iters", &c.warmup_iters, "Steps of linear warm-up")
      .at_least(0)
      .at_most(kMostSteps);
  sink.add("--lr-decay-iters", &c.lr_decay_iters,
           "Step at which --min-lr is reached; 0: --max-iters")
      .at_least(0)
      .at_most(kMostSteps);
  sink.add("--beta1", &c.beta1, "AdamW: decay of the first moment").at_least(0).at_most(kMostBeta);
  sink.add("--beta2", &c.beta2, "AdamW: decay of the second moment").at_least(0).at_most(kMostBeta);
  sink.add("--weight-decay", &c.weight_decay, "AdamW: decay of matrices and embeddings")
      .at_least(0)
      .at_most(kMostRate);
  sink.add("--grad-clip", &c.grad_clip, "Largest global gradient norm; 0: no clipping").at_least(0);
  sink.add("--seed", &c.seed, "Seed of initial parameters and data order").at_least(0);
}

template <class Sink, class Config>
void for_each_output_option(Sink& sink, Config& c) {
  sink.group("Evaluation and output");
  sink.add("--eval-interval", &c.eval_interval, "Steps between evaluations; 0: only at the end")
      .at_least(0)
      .at_most(kMostSteps);
  sink.add("--eval-iters", &c.eval_iters, "Batches of an evaluation")
      .at_least(1)
      .at_most(kMostEvaluationBatches);
  sink.add("--log-interval", &c.log_interval, "Steps between step lines")
      .at_least(1)
      .at_most(kMostSteps);
  sink.add("--tensorboard", &c.tensorboard, "Also write TensorBoard event files to --out-dir");
  sink.add("--sample-tokens", &c.sample_tokens, "Length of the sample at the end; 0: none")
      .at_least(0)
      .at_most(kMostSteps);
  sink.add("--prompt", &c.prompt, "Text that the sample continues; empty: a newline");
}

template <class Sink, class Config>
void for_each_file_option(Sink& sink, Config& c) {
  sink.group("Files");
  sink.add("--data-dir", &c.data_dir, "Folder with train.bin, val.bin and vocab.json")
      .value_name("FOLDER");
  sink.add("--out-dir", &c.out_dir, "Folder for checkpoints and metrics").value_name("FOLDER");
  sink.add("--resume", &c.resume, "Continue from the newest checkpoint in --out-dir");
  sink.add("--plan", &c.plan,
           "Only say what memory and time the run would take, and the largest batch that fits");
  sink.add("--stop-at", &c.stop_at, "Save and stop after this step; 0: --max-iters")
      .at_least(0)
      .at_most(kMostSteps);
  sink.add("--checkpoint-interval", &c.checkpoint_interval,
           "Steps between checkpoints; 0: only at the end")
      .at_least(0)
      .at_most(kMostSteps);
  sink.add("--keep-checkpoints", &c.keep_checkpoints, "Newest checkpoints to keep; 0: all")
      .at_least(0)
      .at_most(kMostSteps);
}

template <class Sink, class Config>
void for_each_machine_option(Sink& sink, Config& c) {
  sink.group("Machine");
  sink.add("--device", &c.device, "Where to compute; auto: on GPUs when every rank has one")
      .one_of({"auto", "cpu", "cuda"});
  sink.add("--precision", &c.precision,
           "Of matrix products: fp32, or tf32 on a GPU's tensor cores (10 bits of mantissa)")
      .one_of({"fp32", "tf32"});
  sink.add("--cuda-graph", &c.cuda_graph,
           "Launch a step as one graph on a GPU; the bits are the same");
  sink.add("--share-gpu", &c.share_gpu, "Let ranks of one host share a GPU");
  sink.add("--threads", &c.threads, "CPU threads of a rank; 0: its share of the cores")
      .at_least(0)
      .at_most(kMostThreads);
  sink.add("--transport", &c.transport,
           "How ranks exchange gradients; peer, staged: GPUs of one host; shm: one host; socket: "
           "any; nccl: GPUs of any hosts by NVIDIA's NCCL, with bits of its own for 3 ranks and "
           "more")
      .one_of(kTransportWords);
  sink.add("--bucket-mb", &c.bucket_mb,
           "MiB of gradients that are summed in one collective; 0: found by timing sums at start, "
           "and by the first steps whether to sum beside backward at all")
      .at_least(0)
      .at_most(kMostMib);
  sink.add("--overlap", &c.overlap, "Sum gradients while backward goes on, where it pays");
  sink.add("--copy-engines", &c.copy_engines,
           "Two GPUs: copy engines move buckets of 16 MiB and more beside backward, and take as "
           "much memory as the gradients; no faster over NVLink");
  sink.add("--shard-optimizer", &c.shard_optimizer,
           "Each rank updates a part of the parameters, keeps AdamW's moments of that part alone, "
           "and sends what it has updated to the others (ZeRO stage 1); not by --transport staged "
           "or nccl; the bits are the same");
  sink.add("--peer-timeout", &c.peer_timeout,
           "Seconds of silence after which a rank is lost; 0: 3.5 on GPUs, 10 on CPUs")
      .at_least(0)
      .at_most(kMostSeconds);
  sink.add("--collective-timeout", &c.collective_timeout,
           "Seconds that a sum waits for a rank that lives; more than a checkpoint takes to write")
      .at_least(1)
      .at_most(kMostSeconds);
  sink.add("--bind-address", &c.bind_address,
           "Address or interface to listen on; empty: loopback on one host, else every address")
      .value_name("ADDRESS");
}

template <class Sink, class Config>
void for_each_check_option(Sink& sink, Config& c) {
  sink.group("Checks");
  sink.add("--verify-reduce", &c.verify_reduce,
           "Sum every gradient over a second transport too and compare all bits: slow; what "
           "--shard-optimizer gathers, --check-interval 1 compares");
  sink.add("--check-interval", &c.check_interval,
           "Steps between comparisons of all ranks' parameters; 0: never")
      .at_least(0)
      .at_most(kMostSteps);
}

template <class Sink, class Config>
void for_each_step_option(Sink& sink, Config& config) {
  for_each_model_option(sink, config);
  for_each_batch_option(sink, config);
  for_each_machine_option(sink, config);
}

template <class Sink, class Config>
void for_each_option(Sink& sink, Config& config) {
  for_each_model_option(sink, config);
  for_each_batch_option(sink, config);
  for_each_optimisation_option(sink, config);
  for_each_output_option(sink, config);
  for_each_file_option(sink, config);
  for_each_machine_option(sink, config);
  for_each_check_option(sink, config);
}

/// Declares each option on a command line.
class Declarer {
 public:
  explicit Declarer(CommandLine& cli) : cli_(&cli) {}
  void group(std::string name) { group_ = std::move(name); }
  template <class T>
  CommandLine::Option add(const char* name, T* value, const char* help) {
    return cli_->option(name, value, help).group(group_);
  }
  CommandLine::Option add(const char* name, bool* value, const char* help) {
    return cli_->flag(name, value, help).group(group_);
  }

 private:
  CommandLine* cli_;
  std::string group_;
};

/// Writes each option as text.
class Texts {
 public:
  static void group(const char* /*name*/) {}
  template <class T>
  Texts& add(const char* name, const T* value, const char* /*help*/) {
    texts_[name + 2] = fmt::format("{}", *value);  // without the dashes, as in a file
    return *this;
  }
  Texts& at_least(double /*bound*/) { return *this; }
  Texts& greater_than(double /*bound*/) { return *this; }
  Texts& at_most(double /*bound*/) { return *this; }
  Texts& less_than(double /*bound*/) { return *this; }
  Texts& value_name(const std::string& /*name*/) { return *this; }
  Texts& one_of(const std::vector<std::string>& /*words*/) { return *this; }

  std::map<std::string, std::string> take() { return std::move(texts_); }

 private:
  std::map<std::string, std::string> texts_;
};

}  // namespace

void declare_options(CommandLine& cli, TrainConfig& config) {
  Declarer declarer(cli);
  for_each_option(declarer, config);
  cli.config_file();
}

void declare_step_options(CommandLine& cli, TrainConfig& config) {
  Declarer declarer(cli);
  for_each_step_option(declarer, config);
}

std::map<std::string, std::string> TrainConfig::options() const {
  Texts texts;
  for_each_option(texts, *this);
  return texts.take();
}

std::map<std::string, std::string> TrainConfig::step_options() const {
  Texts texts;
  for_each_step_option(texts, *this);
  return texts.take();
}

GptConfig TrainConfig::model(int64_t vocab_size) const {
  GptConfig model;
  model.vocab_size = vocab_size;
  model.block_size = block_size;
  model.n_layer = n_layer;
  model.n_head = n_head;
  model.n_embd = n_embd;
  model.gelu = gelu == "erf" ? Gelu::kErf : Gelu::kTanh;
  model.validate();
  return model;
}

AdamWOptions TrainConfig::adamw() const {
  AdamWOptions adamw;
  adamw.beta1 = beta1;
  adamw.beta2 = beta2;
  adamw.weight_decay = weight_decay;
  adamw.grad_clip = grad_clip;
  return adamw;
}

LrSchedule TrainConfig::lr_schedule() const {
  return {learning_rate, min_lr, warmup_iters, lr_decay_iters == 0 ? max_iters : lr_decay_iters};
}

ControlOptions TrainConfig::control() const {
  ControlOptions control;
  control.peer_timeout = peer_limit(false);
  control.finish_timeout = milliseconds(collective_timeout);
  control.bind_address = bind_address;
  return control;
}

std::chrono::milliseconds TrainConfig::peer_limit(bool cuda) const {
  // Where CPUs compute, heartbeats compete with that for the cores, and machines are shared with
  // others; a GPU leaves its host idle, and what waits for a lost rank is dear.
  constexpr double kOnCpus = 10;
  constexpr double kOnGpus = 3.5;
  return milliseconds(peer_timeout != 0 ? peer_timeout : cuda ? kOnGpus : kOnCpus);
}

CommunicatorOptions TrainConfig::communicator(int64_t window_elements) const {
  CommunicatorOptions communicator;
  communicator.transport = transport_choice(transport);
  communicator.collective_timeout = milliseconds(collective_timeout);
  communicator.window_elements = window_elements;
  communicator.bind_address = bind_address;
  communicator.copy_engines = copy_engines;
  return communicator;
}

int64_t TrainConfig::bucket_elements() const {
  return bucket_mb == 0 ? 0 : std::max<int64_t>(1, std::llround(bucket_mb * kElementsPerMib));
}

void TrainConfig::validate() const {
  if (data_dir.empty() || out_dir.empty()) {
    throw UsageError("{} is empty; give a folder", data_dir.empty() ? "--data-dir" : "--out-dir");
  }
  if (min_lr > learning_rate) {
    throw UsageError("--min-lr {} is above --learning-rate {}", min_lr, learning_rate);
  }
  if (stop_at > max_iters) {
    throw UsageError("--stop-at {} is behind the end of the run, --max-iters {}", stop_at,
                     max_iters);
  }
  if (copy_engines && !overlap) {
    throw UsageError("--copy-engines is for sums beside backward, which --no-overlap leaves out");
  }
  if (copy_engines && shard_optimizer) {
    throw UsageError(
        "--copy-engines is for sums of all gradients at every rank, which "
        "--shard-optimizer leaves out");
  }
  if (peer_timeout != 0 && peer_timeout < 1) {
    throw UsageError("--peer-timeout {}: heartbeats come every half a second; give 1 or more",
                     peer_timeout);
  }
  if (lr_decay_iters != 0 && lr_decay_iters < warmup_iters) {
    throw UsageError("--lr-decay-iters {} ends before --warmup-iters {} have passed",
                     lr_decay_iters, warmup_iters);
  }
}

}  // namespace lockstep
