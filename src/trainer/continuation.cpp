#include "trainer/continuation.h"

#include "core/base/error.h"

namespace lockstep {
namespace {

template <class T>
void check(const std::string& where, const char* flag, const T& saved, const T& now) {
  if (saved != now) {
    throw UsageError(
        "{} was made with {} {}, this run has {}: give the same, or start anew in another "
        "--out-dir",
        where, flag, saved, now);
  }
}

}  // namespace

void check_continues(const TrainingState& checkpoint, const RunIdentity& run,
                     const std::string& where) {
  const GptConfig& saved = checkpoint.model;
  check(where, "--n-layer", saved.n_layer, run.model.n_layer);
  check(where, "--n-head", saved.n_head, run.model.n_head);
  check(where, "--n-embd", saved.n_embd, run.model.n_embd);
  check(where, "--block-size", saved.block_size, run.model.block_size);
  check(where, "--gelu", gelu_name(saved.gelu), gelu_name(run.model.gelu));
  check(where, "a vocabulary of", saved.vocab_size, run.model.vocab_size);
  check(where, "--seed", checkpoint.seed, run.seed);
  check(where, "--global-batch-size", checkpoint.global_batch, run.global_batch_size);
  if (checkpoint.dataset_fingerprint != run.dataset_fingerprint) {
    throw UsageError(
        "{} was trained on other data than --data-dir holds now (fingerprint {:.12} against "
        "{:.12}): give the folder that it was trained on, or start anew in another --out-dir",
        where, checkpoint.dataset_fingerprint, run.dataset_fingerprint);
  }
}

}  // namespace lockstep
