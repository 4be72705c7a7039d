#include "kernels/cuda/gemm/planned_gemm.h"

#include <algorithm>
#include <cstdint>

#include "core/base/ceil_div.h"
#include "core/base/error.h"
#include "core/base/range.h"
#include "kernels/cuda/column_partials.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/finish.h"
#include "kernels/cuda/gemm/launch.h"
#include "kernels/cuda/gemm/problem.h"

namespace lockstep {
namespace cuda {
namespace {

/// An operand, or a part of it, as a kernel reads it.
struct Pitched {
  CudaView<const float> data;
  int64_t pitch;  ///< elements from row to row
};

// A product on its way through its parts.
class PlannedGemm {
 public:
  PlannedGemm(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan,
              const OnTheWay& on_the_way)
      : stream_(stream),
        problem_(plan.swapped ? swapped(problem) : problem),
        plan_(plan),
        on_the_way_(on_the_way),
        copies_b_(copies_b(plan.kernel, query_of(problem_))),
        depth_(plan.part_k > 0 ? plan.part_k : problem_.k),
        depths_(depth_ > 0 ? ceil_div(problem_.k, depth_) : 1) {
    LOCKSTEP_CHECK(!plan.swapped || can_swap(plan.kernel, query_of(problem)),
                   "a swapped product by {}", kernel_facts(plan.kernel).name);
    LOCKSTEP_CHECK(takes_a(plan.kernel, query_of(problem_)), "an a of this major by {}",
                   kernel_facts(plan.kernel).name);
    LOCKSTEP_CHECK(aligned_rows(problem_) || takes_unaligned(plan.kernel), "unaligned rows by {}",
                   kernel_facts(plan.kernel).name);
    LOCKSTEP_CHECK(kernel_facts(plan.kernel).wgmma || depths_ == 1, "parts of {} by {}", depth_,
                   kernel_facts(plan.kernel).name);
    // Each part starts at a multiple of 16 bytes: with aligned rows its size is a multiple of four.
    const int64_t sums = depths_ > 1 ? depths_ * problem_.m * problem_.n : 0;
    const int64_t partials =
        finishes_at_once() ? 0 : (plan.slices * problem_.m * problem_.n + 3) / 4 * 4;
    const int64_t b = copies_b_ ? depth_ * problem_.n : 0;
    const int64_t last_depth = problem_.k - (depths_ - 1) * depth_;
    const int64_t a_runs = (depths_ - 1) * sum_runs(depth_) + sum_runs(last_depth);
    const int64_t a_partials = a_runs * on_the_way.a_sums.size();
    CudaView<float> rest = stream.scratch<float>(sums + partials + b + a_partials);
    const auto take = [&rest](int64_t size) {
      const CudaView<float> taken = rest.subview({0, size});
      rest = rest.subview({size, rest.size()});
      return taken;
    };
    sums_ = take(sums);
    partials_ = take(partials);
    b_ = take(b);
    a_partials_ = take(a_partials);
  }

  void run() const {
    for (int64_t part = 0; part < depths_; ++part) {
      const Range depth = {part * depth_, std::min((part + 1) * depth_, problem_.k)};
      multiply(part_of(part, depth), a_of(depth), b_of(depth),
               plan_.swapped || a_partials_.empty() ? nullptr : sums_of_a(depth));
    }
    if (depths_ > 1) {
      finish(sums_.data(), depths_);
    }
    if (!a_partials_.empty()) {
      sum_column_partials(stream_, {.parts = a_partials_.size() / on_the_way_.a_sums.size(),
                                    .columns = on_the_way_.a_sums.size(),
                                    .partials = a_partials_,
                                    .out = on_the_way_.a_sums,
                                    .accumulate = problem_.accumulate});
    }
  }

 private:
  // Whether a part's kernel leaves nothing to be done to what it computes.
  bool finishes_at_once() const {
    const unsigned features = depths_ > 1 ? kPlain : features_of(problem_);
    const bool transposed = plan_.swapped && depths_ == 1;
    return plan_.slices == 1 && !transposed &&
           (features == kPlain || (aligned_rows(problem_) && is_fused(problem_, features)));
  }

  // Into how many runs the sums over `depth` of k of the caller's a are divided: by the copy of a
  // swapped product's b, or by the kernel.
  int64_t sum_runs(int64_t depth) const {
    return plan_.swapped ? transpose_sum_rows(depth)
                         : sliced_plan(plan_.kernel, depth, plan_.slices).slices;
  }
  // Where those of a part are left.
  float* sums_of_a(Range depth) const {
    const int64_t run = depth.begin / depth_ * sum_runs(depth_);
    return a_partials_.data() + run * on_the_way_.a_sums.size();
  }

  // The last sums, of the slices of all k or of its parts, with what follows them: into c.
  void finish(const float* partials, int64_t count) const {
    if (plan_.swapped) {
      finish_transposed(stream_, swapped(problem_), partials, count);
    } else {
      finish_product(stream_, problem_, partials, count, features_of(problem_));
    }
  }

  // A part with its features and its place in c, or plain and among the sums of the parts of k.
  Gemm<CudaDevice> part_of(int64_t part, Range depth) const {
    const int64_t size = problem_.m * problem_.n;
    Gemm<CudaDevice> result = depths_ > 1 ? without_features(problem_) : problem_;
    result.k = depth.size();
    if (depths_ > 1) {
      result.c = sums_.subview({part * size, (part + 1) * size});
    }
    return result;
  }

  Pitched a_of(Range depth) const {
    const bool m_major = problem_.trans_a == Transpose::kYes;
    const int64_t pitch = m_major ? problem_.m : problem_.k;
    return {part_from(problem_.a, m_major ? depth.begin * pitch : depth.begin), pitch};
  }

  Pitched b_of(Range depth) const {
    const bool n_major = problem_.trans_b == Transpose::kNo;
    const int64_t pitch = n_major ? problem_.n : problem_.k;
    const CudaView<const float> from =
        part_from(problem_.b, n_major ? depth.begin * pitch : depth.begin);
    if (!copies_b_) {
      return {from, pitch};
    }
    if (on_the_way_.b_norm) {
      RowNorm norm = *on_the_way_.b_norm;
      norm.mean += depth.begin;
      norm.rstd += depth.begin;
      transpose_normed(stream_, b_.data(), from.data(), depth.size(), problem_.n, norm);
    } else if (plan_.swapped && !a_partials_.empty()) {
      transpose_summed(stream_, b_.data(), sums_of_a(depth), from.data(), depth.size(), problem_.n,
                       pitch);
    } else {
      transpose_matrix(stream_, b_.data(), from.data(), depth.size(), problem_.n, pitch);
    }
    return {b_, depth.size()};
  }

  static CudaView<const float> part_from(CudaView<const float> operand, int64_t begin) {
    return operand.subview({begin, operand.size()});
  }

  // `a_sums`: where the kernel leaves the sums of a's rows, or null.
  void multiply(Gemm<CudaDevice> part, const Pitched& a, const Pitched& b, float* a_sums) const {
    part.a = a.data;
    part.b = b.data;
    part.trans_b = copies_b_ ? Transpose::kYes : problem_.trans_b;
    GemmLaunch launch = {.problem = part,
                         .plan = sliced_plan(plan_.kernel, part.k, plan_.slices),
                         .a_pitch = a.pitch,
                         .b_pitch = b.pitch,
                         .a_sums = a_sums,
                         .a_sums_pitch = problem_.m};
    const GemmLauncher launcher = launcher_of(plan_.kernel, aligned_rows(problem_));
    if (finishes_at_once()) {
      launch.features = features_of(part);
      launcher(stream_, launch);
      return;
    }
    launch.partials = partials_.data();
    launcher(stream_, launch);
    if (depths_ == 1) {
      finish(partials_.data(), launch.plan.slices);
    } else {
      finish_product(stream_, part, partials_.data(), launch.plan.slices, kPlain);
    }
  }

  CudaStream& stream_;
  Gemm<CudaDevice> problem_;  // as it is computed: swapped, if the plan is
  const GemmPlan& plan_;
  const OnTheWay& on_the_way_;
  bool copies_b_;
  int64_t depth_;               // of a part
  int64_t depths_;              // parts of k
  CudaView<float> sums_;        // (depths, m, n), when there are several
  CudaView<float> partials_;    // of a part's slices
  CudaView<float> b_;           // transposed, of a part
  CudaView<float> a_partials_;  // (runs of k, columns): sums of the caller's a
};

}  // namespace

void run_gemm(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan,
              const OnTheWay& on_the_way) {
  PlannedGemm(stream, problem, plan, on_the_way).run();
}

}  // namespace cuda

void gemm_by_plan(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan) {
  cuda::check_product(problem);
  if (problem.m > 0 && problem.n > 0) {
    cuda::run_gemm(stream, problem, plan, {});
  }
}

}  // namespace lockstep
