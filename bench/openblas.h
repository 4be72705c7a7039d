#pragma once

#include <string>

#include "gemm_shapes.h"

namespace lockstep {

/// OpenBLAS as the baseline of a bench, loaded when the program runs: nothing links it. Its symbols
/// stay out of the program's.
class OpenBlas {
 public:
  /// Throws UnsupportedError when libopenblas.so.0 is not installed.
  explicit OpenBlas(int threads);
  ~OpenBlas();
  OpenBlas(const OpenBlas&) = delete;
  OpenBlas& operator=(const OpenBlas&) = delete;
  OpenBlas(OpenBlas&&) = delete;
  OpenBlas& operator=(OpenBlas&&) = delete;

  /// Version, build options and the processor whose code it chose.
  std::string description() const;

  /// c = op(a) · op(b), row-major.
  void gemm(const GemmShape& shape, const float* a, const float* b, float* c) const;

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  void* symbol(const char* name) const;

  void* library_;
  Sgemm sgemm_ = nullptr;
};

}  // namespace lockstep
