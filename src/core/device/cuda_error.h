#pragma once

namespace lockstep {

/// Throws when a CUDA call failed, OutOfMemoryError for a failed allocation: `code` is its
/// cudaError_t, `doing` says what was attempted.
void check_cuda(int code, const char* doing);

}  // namespace lockstep
