#pragma once

#include "comm/cuda/peer_words.h"
#include "comm/cuda/staged_region.h"

struct CUstream_st;

namespace lockstep {

// What two ranks run to sum through memory of the host. The words of a PeerSum lie there; of its
// windows this rank's alone is used.

/// The whole sum by one kernel. `own` and `other`: the mailboxes of this rank and of the other one.
void launch_exchange(CUstream_st* stream, const PeerSum& sum, Mailbox* own, const Mailbox* other);

/// A sum by copy engines begins: tells the other rank which one, and waits until that has come to
/// the same one.
void launch_open(CUstream_st* stream, const PeerSum& sum);
/// Within it: tells the other rank that this one has come to its next piece, and waits for that.
void launch_meet(CUstream_st* stream, const PeerSum& sum);
/// It ends.
void launch_close(CUstream_st* stream, const PeerSum& sum);

}  // namespace lockstep
