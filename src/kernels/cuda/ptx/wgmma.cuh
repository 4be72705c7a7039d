#pragma once

// Hopper's warpgroup products: 128 threads together, operands read from shared memory by the tensor
// cores themselves, asynchronously. PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".

#include <cstdint>

namespace lockstep::cuda {

/// Names a K-major tile in shared memory whose rows are 128 bytes (32 floats) long, under the
/// 128-byte swizzle of the tensor memory accelerator: its address, the 1024 bytes from each eight
/// rows to the next, and the kind of swizzle. The tile starts at a multiple of 1024 bytes. Bit 16
/// is the offset along k, which is assumed to be 1 under a swizzle and not used.
__device__ inline uint64_t warpgroup_operand(uint32_t shared_address) {
  constexpr uint64_t kEightRows = uint64_t{1024 / 16} << 32;
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return (shared_address & 0x3FFFFU) / 16 | uint64_t{1} << 16 | kEightRows | kSwizzle128;
}

/// One step of k in such a name: eight floats. The swizzle is of the bits of addresses, so that a
/// step inside of a row is added to the start.
inline constexpr uint64_t kWarpgroupStep = 32 / 16;

/// Before the first product after registers of the sums were written.
__device__ inline void warpgroup_arrive() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// Closes the group of the products issued so far.
__device__ inline void warpgroup_commit() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Waits until at most kPending groups are unfinished.
template <int kPending>
__device__ void warpgroup_wait() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#endif
}
/// Keeps the compiler from moving reads and writes of the sums across: it does not know that
/// products write them until they are waited for.
template <int kCount>
__device__ void warpgroup_fence_sums(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
  }
}
// Operand lists: sixteen registers of the sums as text and as constraints.
#define LOCKSTEP_SUMS_TEXT_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LOCKSTEP_SUMS_TEXT_1 \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LOCKSTEP_SUMS_TEXT_2 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define LOCKSTEP_SUMS_TEXT_3 \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LOCKSTEP_SUMS_TEXT_4 \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define LOCKSTEP_SUMS_TEXT_5 \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define LOCKSTEP_SUMS_TEXT_6 \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define LOCKSTEP_SUMS_TEXT_7 \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define LOCKSTEP_SUMS_4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define LOCKSTEP_SUMS(b)                                                                   \
  LOCKSTEP_SUMS_4(16 * (b)), LOCKSTEP_SUMS_4(16 * (b) + 4), LOCKSTEP_SUMS_4(16 * (b) + 8), \
      LOCKSTEP_SUMS_4(16 * (b) + 12)
// `a` and `b` are the operands' places behind the sums, as text; `from` is what comes there.
#define LOCKSTEP_WGMMA(n, text, a, b, scale, from, ...)                                           \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " scale ", 0; wgmma.mma_async.sync.aligned.m64n" n \
               "k8.f32.tf32.tf32 {" text "}, " a ", " b ", p, 1, 1; }"                            \
               : __VA_ARGS__                                                                      \
               : from, "l"(b_operand), "r"(static_cast<int>(add)))

/// A warpgroup's 64 x 8 of a, in registers: of 16 rows for each warp, a lane (g, t) holds rows g
/// and g + 8 at k = t, then both at k = t + 4.
struct WarpgroupFragment {
  uint32_t words[4];
};

/// d = a · bᵀ in TF32, or d += for `add`, for 64 rows of a and kN of b, both eight k deep; only the
/// upper 19 bits of their elements count. Of 16 rows for each warp, a lane (g, t) holds in d[4 j
/// ...] rows g, g, g + 8, g + 8, columns 8 j + 2 t, + 1, + 0, + 1.
template <int kN>
__device__ void warpgroup_mma_tf32(float (&d)[kN / 2], uint64_t a_operand, uint64_t b_operand,
                                   bool add = true) {
  static_assert(kN == 64 || kN == 96 || kN == 128 || kN == 192 || kN == 256);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (kN == 64) {
    LOCKSTEP_WGMMA("64", LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1, "%32", "%33", "%34",
                   "l"(a_operand), LOCKSTEP_SUMS(0), LOCKSTEP_SUMS(1));
  } else if constexpr (kN == 96) {
    LOCKSTEP_WGMMA("96", LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2,
                   "%48", "%49", "%50", "l"(a_operand), LOCKSTEP_SUMS(0), LOCKSTEP_SUMS(1),
                   LOCKSTEP_SUMS(2));
  } else if constexpr (kN == 128) {
    LOCKSTEP_WGMMA("128",
                   LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2
                                        ", " LOCKSTEP_SUMS_TEXT_3,
                   "%64", "%65", "%66", "l"(a_operand), LOCKSTEP_SUMS(0), LOCKSTEP_SUMS(1),
                   LOCKSTEP_SUMS(2), LOCKSTEP_SUMS(3));
  } else if constexpr (kN == 192) {
    LOCKSTEP_WGMMA("192",
                   LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2
                                        ", " LOCKSTEP_SUMS_TEXT_3 ", " LOCKSTEP_SUMS_TEXT_4
                                        ", " LOCKSTEP_SUMS_TEXT_5,
                   "%96", "%97", "%98", "l"(a_operand), LOCKSTEP_SUMS(0), LOCKSTEP_SUMS(1),
                   LOCKSTEP_SUMS(2), LOCKSTEP_SUMS(3), LOCKSTEP_SUMS(4), LOCKSTEP_SUMS(5));
  } else if constexpr (kN == 256) {
    LOCKSTEP_WGMMA("256",
                   LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2
                                        ", " LOCKSTEP_SUMS_TEXT_3 ", " LOCKSTEP_SUMS_TEXT_4
                                        ", " LOCKSTEP_SUMS_TEXT_5 ", " LOCKSTEP_SUMS_TEXT_6
                                        ", " LOCKSTEP_SUMS_TEXT_7,
                   "%128", "%129", "%130", "l"(a_operand), LOCKSTEP_SUMS(0), LOCKSTEP_SUMS(1),
                   LOCKSTEP_SUMS(2), LOCKSTEP_SUMS(3), LOCKSTEP_SUMS(4), LOCKSTEP_SUMS(5),
                   LOCKSTEP_SUMS(6), LOCKSTEP_SUMS(7));
  }
#endif
}

/// The same with a in registers, which must stay as they are until the products are waited for.
#define LOCKSTEP_FRAGMENT "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3])
template <int kN>
__device__ void warpgroup_mma_tf32(float (&d)[kN / 2], const WarpgroupFragment& a,
                                   uint64_t b_operand, bool add = true) {
  static_assert(kN == 64 || kN == 96 || kN == 128 || kN == 192 || kN == 256);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (kN == 64) {
    LOCKSTEP_WGMMA("64", LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1, "{%32, %33, %34, %35}",
                   "%36", "%37", LOCKSTEP_FRAGMENT, LOCKSTEP_SUMS(0), LOCKSTEP_SUMS(1));
  } else if constexpr (kN == 96) {
    LOCKSTEP_WGMMA("96", LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2,
                   "{%48, %49, %50, %51}", "%52", "%53", LOCKSTEP_FRAGMENT, LOCKSTEP_SUMS(0),
                   LOCKSTEP_SUMS(1), LOCKSTEP_SUMS(2));
  } else if constexpr (kN == 128) {
    LOCKSTEP_WGMMA("128",
                   LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2
                                        ", " LOCKSTEP_SUMS_TEXT_3,
                   "{%64, %65, %66, %67}", "%68", "%69", LOCKSTEP_FRAGMENT, LOCKSTEP_SUMS(0),
                   LOCKSTEP_SUMS(1), LOCKSTEP_SUMS(2), LOCKSTEP_SUMS(3));
  } else if constexpr (kN == 192) {
    LOCKSTEP_WGMMA("192",
                   LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2
                                        ", " LOCKSTEP_SUMS_TEXT_3 ", " LOCKSTEP_SUMS_TEXT_4
                                        ", " LOCKSTEP_SUMS_TEXT_5,
                   "{%96, %97, %98, %99}", "%100", "%101", LOCKSTEP_FRAGMENT, LOCKSTEP_SUMS(0),
                   LOCKSTEP_SUMS(1), LOCKSTEP_SUMS(2), LOCKSTEP_SUMS(3), LOCKSTEP_SUMS(4),
                   LOCKSTEP_SUMS(5));
  } else if constexpr (kN == 256) {
    LOCKSTEP_WGMMA("256",
                   LOCKSTEP_SUMS_TEXT_0 ", " LOCKSTEP_SUMS_TEXT_1 ", " LOCKSTEP_SUMS_TEXT_2
                                        ", " LOCKSTEP_SUMS_TEXT_3 ", " LOCKSTEP_SUMS_TEXT_4
                                        ", " LOCKSTEP_SUMS_TEXT_5 ", " LOCKSTEP_SUMS_TEXT_6
                                        ", " LOCKSTEP_SUMS_TEXT_7,
                   "{%128, %129, %130, %131}", "%132", "%133", LOCKSTEP_FRAGMENT, LOCKSTEP_SUMS(0),
                   LOCKSTEP_SUMS(1), LOCKSTEP_SUMS(2), LOCKSTEP_SUMS(3), LOCKSTEP_SUMS(4),
                   LOCKSTEP_SUMS(5), LOCKSTEP_SUMS(6), LOCKSTEP_SUMS(7));
  }
#endif
}

#undef LOCKSTEP_FRAGMENT
#undef LOCKSTEP_WGMMA
#undef LOCKSTEP_SUMS
#undef LOCKSTEP_SUMS_4
#undef LOCKSTEP_SUMS_TEXT_0
#undef LOCKSTEP_SUMS_TEXT_1
#undef LOCKSTEP_SUMS_TEXT_2
#undef LOCKSTEP_SUMS_TEXT_3
#undef LOCKSTEP_SUMS_TEXT_4
#undef LOCKSTEP_SUMS_TEXT_5
#undef LOCKSTEP_SUMS_TEXT_6
#undef LOCKSTEP_SUMS_TEXT_7

}  // namespace lockstep::cuda
