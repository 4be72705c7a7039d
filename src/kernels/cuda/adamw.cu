// AdamW on the GPU: one launch over the shard, each element read and written once. Every operation
// is rounded by itself, never fused, so that an element's update has the bits that it has on the
// CPU.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/check_size.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/pack.cuh"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPacks = 2;  // of a thread

struct Update {
  float* parameters;
  float* m;
  float* v;
  const float* gradients;
  const AdamWStep* step;
  const uint8_t* decays;  // null: all do
  int64_t size;           // of the moments
  ArenaShard shard;
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;
};

/// The step's factors as the CPU rounds them.
struct Factors {
  float learning_rate;
  float inverse_bias_correction1;
  float inverse_bias_correction2;
  float gradient_scale;
  float one_minus_beta1;
  float one_minus_beta2;

  __device__ Factors(const Update& update, const AdamWStep& step)
      : learning_rate(step.learning_rate),
        inverse_bias_correction1(1.0F / step.bias_correction1),
        inverse_bias_correction2(1.0F / step.bias_correction2),
        gradient_scale(step.gradient_scale),
        one_minus_beta1(1.0F - update.beta1),
        one_minus_beta2(1.0F - update.beta2) {}
};

__device__ void update_element(const Update& update, const Factors& with, float decay, float& p,
                               float& m, float& v, float gradient) {
  const float g = __fmul_rn(with.gradient_scale, gradient);
  m = __fadd_rn(__fmul_rn(update.beta1, m), __fmul_rn(with.one_minus_beta1, g));
  v = __fadd_rn(__fmul_rn(update.beta2, v), __fmul_rn(__fmul_rn(with.one_minus_beta2, g), g));
  const float root = __fadd_rn(sqrtf(__fmul_rn(v, with.inverse_bias_correction2)), update.epsilon);
  const float step =
      __fadd_rn(__fdiv_rn(__fmul_rn(m, with.inverse_bias_correction1), root), __fmul_rn(decay, p));
  p = __fsub_rn(p, __fmul_rn(with.learning_rate, step));
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) adamw_kernel(Update update) {
  const AdamWStep step = *update.step;
  if (isnan(step.gradient_scale)) {
    return;
  }
  constexpr int64_t kBlock = kThreads * kPacks * kWidth;
  static_assert(kSegmentElements % kBlock == 0, "a block's elements lie in one segment");
  const int64_t first = blockIdx.x * kBlock + threadIdx.x * kWidth;
  const int64_t ahead = update.shard.position(blockIdx.x * kBlock) - blockIdx.x * kBlock;
  Pack<kWidth> p[kPacks];
  Pack<kWidth> m[kPacks];
  Pack<kWidth> v[kPacks];
  Pack<kWidth> g[kPacks];
  float decay[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t at = first + i * kThreads * kWidth;
    if (at < update.size) {
      p[i] = load_pack<kWidth>(update.parameters + ahead + at);
      m[i] = load_pack<kWidth>(update.m + at);
      v[i] = load_pack<kWidth>(update.v + at);
      g[i] = load_pack<kWidth>(update.gradients + ahead + at);
      const bool decays =
          update.decays == nullptr || update.decays[(ahead + at) / kDecayBlock] != 0;
      decay[i] = decays ? update.weight_decay : 0.0F;
    }
  }
  const Factors factors(update, step);
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t at = first + i * kThreads * kWidth;
    if (at < update.size) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        update_element(update, factors, decay[i], p[i][j], m[i][j], v[i][j], g[i][j]);
      }
      store_pack(update.parameters + ahead + at, p[i]);
      store_pack(update.m + at, m[i]);
      store_pack(update.v + at, v[i]);
    }
  }
}

__global__ void clip_scale_kernel(AdamWStep* step, const double* squared_norm, double grad_clip) {
  const double norm = sqrt(*squared_norm);
  const double scale = grad_clip > 0 ? fmin(1.0, grad_clip / (norm + 1e-6)) : 1.0;
  step->gradient_scale = isfinite(norm) ? static_cast<float>(scale) : nanf("");
}

}  // namespace
}  // namespace cuda

void adamw(CudaStream& stream, const AdamW<CudaDevice>& args) {
  const int64_t size = args.parameters.size();
  const int64_t owned = args.shard.size(size);
  check_size("adamw: m", args.m.size(), owned);
  check_size("adamw: v", args.v.size(), owned);
  check_size("adamw: gradients", args.gradients.size(), size);
  check_size("adamw: step", args.step.size(), 1);
  if (!args.decays.empty()) {
    check_size("adamw: decays", args.decays.size(), (size + kDecayBlock - 1) / kDecayBlock);
  }
  if (owned == 0) {
    return;
  }
  const bool vectorized =
      size % 4 == 0 && cuda::all_aligned16(args.parameters.data(), args.m.data(), args.v.data(),
                                           args.gradients.data());
  cuda::dispatch_width(vectorized, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr int64_t kBlock = kWidth * cuda::kThreads * cuda::kPacks;
    cuda::adamw_kernel<kWidth>
        <<<static_cast<unsigned>((owned + kBlock - 1) / kBlock), cuda::kThreads, 0,
           stream.handle()>>>({.parameters = args.parameters.data(),
                               .m = args.m.data(),
                               .v = args.v.data(),
                               .gradients = args.gradients.data(),
                               .step = args.step.data(),
                               .decays = args.decays.empty() ? nullptr : args.decays.data(),
                               .size = owned,
                               .shard = args.shard,
                               .beta1 = args.beta1,
                               .beta2 = args.beta2,
                               .epsilon = args.epsilon,
                               .weight_decay = args.weight_decay});
  });
  check_cuda(cudaGetLastError(), "launching AdamW");
}

void clip_scale(CudaStream& stream, const ClipScale<CudaDevice>& args) {
  check_size("clip_scale: step", args.step.size(), 1);
  check_size("clip_scale: squared_norm", args.squared_norm.size(), 1);
  cuda::clip_scale_kernel<<<1, 1, 0, stream.handle()>>>(args.step.data(), args.squared_norm.data(),
                                                        args.grad_clip);
  check_cuda(cudaGetLastError(), "launching a clip factor");
}

}  // namespace lockstep
