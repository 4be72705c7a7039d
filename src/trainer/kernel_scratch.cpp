#include "trainer/kernel_scratch.h"

#include "core/device/scratch_growth.h"
#include "kernels/attention.h"
#include "kernels/cuda/attention/kind.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/cuda/gemm/scratch.h"

namespace lockstep {
namespace {

/// A stream's scratch memory as its ops make it grow.
class GrowingScratch {
 public:
  void want(int64_t bytes) {
    if (bytes > block_) {
      block_ = grown_scratch(bytes, block_);
      total_ += block_;
    }
  }
  int64_t total() const { return total_; }

 private:
  int64_t block_ = 0;  // the last is in use
  int64_t total_ = 0;
};

/// A step's ops, in the order in which core/model enqueues them.
class StepScratch {
 public:
  StepScratch(const StepWork& work, const CudaFacts& facts)
      : work_(work),
        facts_(facts),
        rows_(work.batch * work.model.block_size),
        channels_(work.model.n_embd),
        attention_{.batch = work.batch,
                   .time = work.model.block_size,
                   .heads = work.model.n_head,
                   .head_dim = work.model.head_dim()},
        kind_(attention_kind(work.precision, attention_.head_dim)) {}

  int64_t run() {
    const int64_t vocabulary = work_.model.padded_vocab();
    forward(3 * channels_, channels_, false);
    stream_.want(attention_forward_scratch_bytes(kind_, attention_));
    forward(channels_, channels_, false);
    forward(4 * channels_, channels_, false);
    forward(channels_, 4 * channels_, false);
    forward(vocabulary, channels_, true);
    input_gradient(vocabulary, channels_, true);
    backward(channels_, 4 * channels_, false);
    backward(4 * channels_, channels_, true);
    backward(channels_, channels_, true);
    stream_.want(attention_backward_scratch_bytes(kind_, attention_));
    backward(3 * channels_, channels_, true);
    weight_gradient(vocabulary, channels_, false);
    return stream_.total() + branch_.total();
  }

 private:
  // A layer x (rows, in) -> (rows, out).
  void forward(int64_t out, int64_t in, bool plain) {
    product(stream_, {.m = rows_, .n = out, .k = in, .trans_b = Transpose::kYes, .plain = plain});
  }
  void input_gradient(int64_t out, int64_t in, bool plain) {
    product(stream_, {.m = rows_, .n = in, .k = out, .plain = plain});
  }
  void weight_gradient(int64_t out, int64_t in, bool bias) {
    product(branch_, {.m = out, .n = in, .k = rows_, .trans_a = Transpose::kYes, .a_sums = bias});
  }
  void backward(int64_t out, int64_t in, bool plain) {
    weight_gradient(out, in, true);
    input_gradient(out, in, plain);
  }

  void product(GrowingScratch& scratch, const GemmQuery& query) {
    const GemmPlan plan = plan_gemm(query, work_.precision, facts_);
    constexpr bool kFused = true;  // as all that follows a model's products is
    scratch.want(gemm_scratch(query, plan, kFused).total() * static_cast<int64_t>(sizeof(float)));
  }

  const StepWork& work_;
  const CudaFacts& facts_;
  int64_t rows_;
  int64_t channels_;
  AttentionShape attention_;
  AttentionKind kind_;
  GrowingScratch stream_;
  GrowingScratch branch_;  // of weights' gradients
};

}  // namespace

int64_t kernel_scratch(const StepWork& work, const CudaFacts& facts) {
  return StepScratch(work, facts).run();
}

}  // namespace lockstep
