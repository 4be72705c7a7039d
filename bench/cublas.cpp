#include "cublas.h"

#include <dlfcn.h>

#include "core/base/error.h"

namespace lockstep {
namespace {

// The values of cublas_api.h.
constexpr int kNoTrans = 0;
constexpr int kTrans = 1;
constexpr int kDefaultMath = 0;
constexpr int kTf32TensorOpMath = 3;

}  // namespace

Cublas::Cublas(CudaStream& stream) {
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}) {
    library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      break;
    }
  }
  if (library_ == nullptr) {
    throw UnsupportedError("cuBLAS: {}", ::dlerror());
  }
  call("cublasCreate_v2", &handle_);
  call("cublasSetStream_v2", handle_, stream.handle());
}

Cublas::~Cublas() {
  reinterpret_cast<int (*)(void*)>(::dlsym(library_, "cublasDestroy_v2"))(handle_);
  ::dlclose(library_);
}

void* Cublas::symbol(const char* name) const {
  void* const found = ::dlsym(library_, name);
  if (found == nullptr) {
    throw UnsupportedError("cuBLAS lacks {}", name);
  }
  return found;
}

template <class... Args>
void Cublas::call(const char* name, Args... args) const {
  const int status = reinterpret_cast<int (*)(Args...)>(symbol(name))(args...);
  if (status != 0) {
    throw InternalError("{} failed with status {}", name, status);
  }
}

std::string Cublas::version() const {
  int version = 0;
  call("cublasGetVersion_v2", handle_, &version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void Cublas::gemm(const GemmShape& shape, Math math, const float* a, const float* b,
                  float* c) const {
  const bool trans_a = shape.trans_a == Transpose::kYes;
  const bool trans_b = shape.trans_b == Transpose::kYes;
  const auto m = static_cast<int>(shape.m);
  const auto n = static_cast<int>(shape.n);
  const auto k = static_cast<int>(shape.k);
  const float one = 1.0F;
  const float zero = 0.0F;
  call("cublasSetMathMode", handle_, math == Math::kTf32 ? kTf32TensorOpMath : kDefaultMath);
  // It thinks in columns: the transpose of the product is op(b)' op(a)'.
  call("cublasSgemm_v2", handle_, trans_b ? kTrans : kNoTrans, trans_a ? kTrans : kNoTrans, n, m, k,
       &one, b, trans_b ? k : n, a, trans_a ? m : k, &zero, c, n);
}

}  // namespace lockstep
