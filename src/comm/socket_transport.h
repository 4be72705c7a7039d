#pragma once

#include <memory>

#include "comm/transport.h"
#include "core/base/file.h"
#include "core/device/cpu_device.h"

namespace lockstep {

/// The two ends of an edge over one connected, non-blocking stream socket of its own. Published
/// ranges go from the window to the socket and, for a copy, from the socket to the window without a
/// copy in between; what is added passes through one segment of memory that stays in the cache.
///
/// Each message is a 56-byte frame and its data. The frame says which message of the edge it is and
/// of what range; the receiver knows both before, so no length from the wire is ever believed. The
/// frame carries a checksum, and with `check_data` (the same at both ends) the data does too, to
/// find what TCP's own 16-bit sum misses: for edges between hosts. On loopback the bytes never
/// leave the kernel's memory, and the checksum would take as long as the copies. Throw
/// PeerLostError when the connection closes or carries anything but the expected message.
std::unique_ptr<SendEdge> make_socket_send_edge(UniqueFd socket, CpuView<float> window,
                                                bool check_data);
std::unique_ptr<RecvEdge> make_socket_recv_edge(UniqueFd socket, CpuView<float> window,
                                                bool check_data);

}  // namespace lockstep
