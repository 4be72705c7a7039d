#include "kernels/cpu/isa.h"

#include <cstdlib>
#include <string>

#include "core/base/error.h"

namespace lockstep {
namespace {

Isa best_of_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // What -march=x86-64-v3 and -march=x86-64-v4 let the compiler use of vectors.
  const bool v3 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                  __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
  const bool v4 =
      v3 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0;
  if (v4) {
    return Isa::kAvx512;
  }
  if (v3) {
    return Isa::kAvx2;
  }
#endif
  return Isa::kPortable;
}

Isa choose() {
  const Isa best = best_of_processor();
  const char* wanted = std::getenv("LOCKSTEP_ISA");
  if (wanted == nullptr) {
    return best;
  }
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (isa_name(isa) == wanted) {
      if (isa > best) {
        throw UsageError("LOCKSTEP_ISA={}: this processor has {} at best", wanted, isa_name(best));
      }
      return isa;
    }
  }
  throw UsageError("LOCKSTEP_ISA={}: the sets are portable, avx2 and avx512", wanted);
}

}  // namespace

Isa cpu_isa() {
  static const Isa chosen = choose();
  return chosen;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "";
}

}  // namespace lockstep
