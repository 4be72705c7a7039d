#pragma once

#include <cstdint>
#include <memory>

#include "comm/transport.h"
#include "core/base/file.h"
#include "core/device/cpu_device.h"

namespace lockstep {

enum class SocketPath : uint8_t {
  kNetwork,  ///< between hosts
  /// Within a host, where bytes never leave the kernel's memory: a checksum of the data would take
  /// as long as the copies.
  kLoopback
};

/// The two ends of an edge over one connected, non-blocking stream socket of its own.
///
/// Each message is a 64-byte frame (comm/socket_frame.h) and its data. The frame says which message
/// of the edge it is and of what range; the receiver knows both before, so no length from the wire
/// is ever believed. The frame carries a checksum, and between hosts the data does too, to find
/// what TCP's own 16-bit sum misses. Throw PeerLostError when the connection closes or carries
/// anything but the expected message.
///
/// Published ranges go to the socket from where they lie in the window: between hosts they are
/// copied into the kernel's buffers, within a host they are lent (PagePipe). Then the receiver
/// sends one byte back at the end of each collective. A range to be copied is received into the
/// window; what is added passes through one segment of memory that stays in the cache.
///
/// No message has more elements than this, which suits best: messages of 256 KiB took 0.75 of the
/// time of messages of 64 KiB.
inline constexpr int64_t kSocketSegmentElements = 65536;

/// Both ends give the same path. `window` outlives the edge.
std::unique_ptr<SendEdge> make_socket_send_edge(UniqueFd socket, CpuView<const float> window,
                                                SocketPath path);
std::unique_ptr<RecvEdge> make_socket_recv_edge(UniqueFd socket, CpuView<float> window,
                                                SocketPath path);

}  // namespace lockstep
