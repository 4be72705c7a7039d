#include "kernels/cuda/gemm/planned_gemm.h"

#include <algorithm>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/range.h"
#include "kernels/cuda/column_partials.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/finish.h"
#include "kernels/cuda/gemm/launch.h"
#include "kernels/cuda/gemm/problem.h"
#include "kernels/cuda/gemm/scratch.h"

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
        depth_(part_depth(query_of(problem), plan)),
        depths_(parts_of_k(query_of(problem), plan)) {
    LOCKSTEP_CHECK(!plan.swapped || can_swap(plan.kernel, query_of(problem)),
                   "a swapped product by {}", kernel_facts(plan.kernel).name);
    LOCKSTEP_CHECK(takes_a(plan.kernel, query_of(problem_)), "an a of this major by {}",
                   kernel_facts(plan.kernel).name);
    LOCKSTEP_CHECK(aligned_rows(problem_) || takes_unaligned(plan.kernel), "unaligned rows by {}",
                   kernel_facts(plan.kernel).name);
    LOCKSTEP_CHECK(kernel_facts(plan.kernel).wgmma || depths_ == 1, "parts of {} by {}", depth_,
                   kernel_facts(plan.kernel).name);
    GemmQuery query = query_of(problem);
    query.a_sums = !on_the_way.a_sums.empty();
    const unsigned features = features_of(problem_);
    const bool fused =
        features == kPlain || (aligned_rows(problem_) && is_fused(problem_, features));
    finishes_at_once_ = finishes_at_once(query, plan, fused);
    const GemmScratch scratch = gemm_scratch(query, plan, fused);
    CudaView<float> rest = stream.scratch<float>(scratch.total());
    const auto take = [&rest](int64_t size) {
      const CudaView<float> taken = rest.subview({0, size});
      rest = rest.subview({size, rest.size()});
      return taken;
    };
    sums_ = take(scratch.sums);
    partials_ = take(scratch.partials);
    b_ = take(scratch.b);
    a_partials_ = take(scratch.a_partials);
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
  // Where those of a part are left.
  float* sums_of_a(Range depth) const {
    const int64_t run = depth.begin / depth_ * a_sum_runs(plan_, depth_);
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
    if (finishes_at_once_) {
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
  int64_t depth_;                  // of a part
  int64_t depths_;                 // parts of k
  bool finishes_at_once_ = false;  // whether a part's kernel leaves nothing to be done
  CudaView<float> sums_;           // (depths, m, n), when there are several
  CudaView<float> partials_;       // of a part's slices
  CudaView<float> b_;              // transposed, of a part
  CudaView<float> a_partials_;     // (runs of k, columns): sums of the caller's a
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
