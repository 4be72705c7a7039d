#pragma once

#include "comm/cuda/peer_words.h"
#include "core/device/cuda_device.h"

namespace lockstep {

// Each enqueues one sum, by the algorithm of its name; the same on every rank.
void launch_one_shot(CudaStream& stream, const PeerSum& sum, int blocks, int message_packs);
void launch_pull(CudaStream& stream, const PeerSum& sum, int blocks);
void launch_push(CudaStream& stream, const PeerSum& sum, int blocks);
void launch_ring(CudaStream& stream, const PeerSum& sum, int blocks);

// Each enqueues the collective of its name, which is that of `sum`; the same on every rank.
void launch_reduce_scatter(CudaStream& stream, const PeerSum& sum, int blocks);
void launch_all_gather(CudaStream& stream, const PeerSum& sum, int blocks);

}  // namespace lockstep
