#include "openblas.h"

#include <dlfcn.h>

#include "core/base/error.h"

namespace lockstep {
namespace {

// The values of cblas.h.
constexpr int kRowMajor = 101;
constexpr int kNoTrans = 111;
constexpr int kTrans = 112;

}  // namespace

OpenBlas::OpenBlas(int threads) : library_(::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    throw UnsupportedError("--baseline openblas: {}; install libopenblas0", ::dlerror());
  }
  sgemm_ = reinterpret_cast<Sgemm>(symbol("cblas_sgemm"));
  reinterpret_cast<void (*)(int)>(symbol("openblas_set_num_threads"))(threads);
}

OpenBlas::~OpenBlas() {
  ::dlclose(library_);
}

void* OpenBlas::symbol(const char* name) const {
  void* const found = ::dlsym(library_, name);
  if (found == nullptr) {
    throw UnsupportedError("--baseline openblas: the library lacks {}", name);
  }
  return found;
}

std::string OpenBlas::description() const {
  return reinterpret_cast<char* (*)()>(symbol("openblas_get_config"))() + std::string(", ") +
         reinterpret_cast<char* (*)()>(symbol("openblas_get_corename"))();
}

void OpenBlas::gemm(const GemmShape& shape, const float* a, const float* b, float* c) const {
  const bool trans_a = shape.trans_a == Transpose::kYes;
  const bool trans_b = shape.trans_b == Transpose::kYes;
  const auto m = static_cast<int>(shape.m);
  const auto n = static_cast<int>(shape.n);
  const auto k = static_cast<int>(shape.k);
  sgemm_(kRowMajor, trans_a ? kTrans : kNoTrans, trans_b ? kTrans : kNoTrans, m, n, k, 1.0F, a,
         trans_a ? m : k, b, trans_b ? k : n, 0.0F, c, n);
}

}  // namespace lockstep
