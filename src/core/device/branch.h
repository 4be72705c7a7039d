#pragma once

namespace lockstep {

/// A second queue beside a stream, for work that does not depend on what follows on the stream. On
/// a device that runs one op at a time it is the stream itself.
template <class Device>
class Branch {
 public:
  using Stream = typename Device::Stream;
  static_assert(!Device::kRunsBesideHost, "include the device's own branch");

  /// What is enqueued on the returned queue runs behind everything on `stream` so far, and beside
  /// what follows there until join.
  Stream& fork(Stream& stream) { return stream; }

  /// What the queue has been given so far. The last kPoints of them can be joined. The first point
  /// or join comes after a fork.
  struct Point {};
  static constexpr int kPoints = 8;
  Point point() { return {}; }
  /// What is enqueued on `stream` from now on runs behind `point`.
  void join(Stream& /*stream*/, Point /*point*/) {}
  /// What is enqueued on `stream` from now on runs behind everything that the queue was given.
  void join(Stream& /*stream*/) {}
};

}  // namespace lockstep
