#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// Facts of a GPU: plain data, so that a plan can be tested without the GPU.
struct CudaFacts {
  std::string name;
  int compute_capability = 0;  ///< 90 for Hopper
  int multiprocessors = 0;
  int64_t shared_bytes_per_block = 0;  ///< the most that a block may opt in to
  int64_t shared_bytes_per_multiprocessor = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
  std::string pci_id;
  std::string uuid;  ///< 32 hexadecimal digits; equal only for one and the same GPU or part of one
};

/// How the products on a stream are computed. Memory, sums and everything else are fp32.
enum class Precision : uint8_t {
  /// As exact as single precision. Large products of aligned operands are done on tensor cores
  /// where they can (Hopper; SplitProducts says how), others by fused multiply-adds. Against double
  /// precision the former err no more than the latter, with these exceptions: sums lose 1e-7 of
  /// their magnitude where all products have one sign; an infinite factor may make NaN where
  /// infinity is due, and so may one from 2^128 - 2^116 on; what lies below 2^-136 in a factor is
  /// lost.
  kFp32,
  kTf32,  ///< on tensor cores, of factors rounded to ten bits of mantissa
};

}  // namespace lockstep
