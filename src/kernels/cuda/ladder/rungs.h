#pragma once

#include "kernels/cuda/ladder/rung.h"

namespace lockstep {

/// Throws InternalError unless the problem is one that a rung takes: a product that check_product
/// passes, with no features.
void check_rung_problem(const Gemm<CudaDevice>& problem);

// One function per rung, each in the file of its name.
Rung rung_naive();
Rung rung_coalesced();
Rung rung_shared_tile();
Rung rung_register_column();
Rung rung_register_tile();
Rung rung_vectorized();
Rung rung_warp_tile();
Rung rung_double_buffered();
Rung rung_wmma();
Rung rung_mma();
Rung rung_multistage_mma();
Rung rung_multistage_simt();
Rung rung_split_mma();
Rung rung_tma_mma();

}  // namespace lockstep
