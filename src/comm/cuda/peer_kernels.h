#pragma once

#include "comm/cuda/peer_words.h"

struct CUstream_st;

namespace lockstep {

/// Each enqueues one sum on every rank alike.
void launch_pull(CUstream_st* stream, const PeerSum& sum, int blocks);

}  // namespace lockstep
