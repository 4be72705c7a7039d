#pragma once

#include <string>

#include "core/device/cuda_device.h"
#include "gemm_shapes.h"

namespace lockstep {

/// cuBLAS as the baseline of a bench, loaded when the program runs: nothing links it.
class Cublas {
 public:
  enum class Math { kFp32, kTf32 };

  /// Throws UnsupportedError when libcublas.so (13, 12 or 11) cannot be loaded.
  explicit Cublas(CudaStream& stream);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  Cublas(Cublas&&) = delete;
  Cublas& operator=(Cublas&&) = delete;

  std::string version() const;

  /// Enqueues c = op(a) · op(b), row-major.
  void gemm(const GemmShape& shape, Math math, const float* a, const float* b, float* c) const;

 private:
  void* symbol(const char* name) const;
  template <class... Args>
  void call(const char* name, Args... args) const;

  void* library_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace lockstep
