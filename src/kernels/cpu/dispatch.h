#pragma once

#include "kernels/cpu/isa.h"

// Code that exists once for each instruction set.
//
// A source `x_isa.cpp`, listed under lockstep_isa_sources in CMakeLists.txt, is compiled for every
// set of isa.h into the namespace lockstep::LOCKSTEP_ISA, with the vectors of simd.h. Its entry
// points are declared with LOCKSTEP_PER_ISA in a header `x_isa.h` and chosen with
// LOCKSTEP_SELECT_ISA by ordinary code.
//
// The linker keeps one copy of an inline function that several objects emit, whichever it likes:
// had an `_isa.cpp` emitted std::min<float>, an old processor could meet its AVX-512 copy. Such a
// source therefore takes raw pointers and plain structs, and uses no function or template that is
// defined in another namespace; the test lint_isa_symbols checks what its objects define.

/// Declares the same entry points in the namespace of each instruction set.
#if defined(__x86_64__)
#define LOCKSTEP_PER_ISA(...)    \
  namespace lockstep::portable { \
  __VA_ARGS__                    \
  }                              \
  namespace lockstep::avx2 {     \
  __VA_ARGS__                    \
  }                              \
  namespace lockstep::avx512 {   \
  __VA_ARGS__                    \
  }
#else
#define LOCKSTEP_PER_ISA(...)    \
  namespace lockstep::portable { \
  __VA_ARGS__                    \
  }
#endif

/// The entry point `name` for the instruction set that cpu_isa() chose: a function pointer, or a
/// pointer to a constant. Keep it in a function's static: the choice never changes.
#if defined(__x86_64__)
#define LOCKSTEP_SELECT_ISA(name)                                                \
  (::lockstep::cpu_isa() == ::lockstep::Isa::kAvx512 ? &::lockstep::avx512::name \
   : ::lockstep::cpu_isa() == ::lockstep::Isa::kAvx2 ? &::lockstep::avx2::name   \
                                                     : &::lockstep::portable::name)
#else
#define LOCKSTEP_SELECT_ISA(name) (&::lockstep::portable::name)
#endif
