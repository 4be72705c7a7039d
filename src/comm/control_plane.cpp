#include "comm/control_plane.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "comm/connection.h"
#include "comm/control_link.h"
#include "comm/launcher_watch.h"
#include "comm/run_cause.h"
#include "comm/running_time.h"
#include "comm/status_page.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "wire.pb.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr milliseconds kLeaveLimit{1000};   // for the main thread, after an abort
constexpr milliseconds kReportLimit{1000};  // for rank 0 to answer a report
constexpr milliseconds kCauseLimit{500};    // for the cause of a broken connection to arrive
constexpr milliseconds kCloseLimit{300};    // for the other end to close too

/// Another rank, as the control thread knows it.
struct Peer {
  PeerInfo info;
  RankStatus heard;                        ///< by its last heartbeat
  std::unique_ptr<const StatusPage> page;  ///< of a rank of this host
  Clock::duration silence{};               ///< since the last message came, see on_tick
  std::unique_ptr<ControlLink> link;

  RankStatus status() const { return page ? page->read() : heard; }
};

}  // namespace

struct ControlPlane::Impl {
  Impl(Bootstrap& bootstrap, PeerTable table, ControlOptions chosen)
      : rank(bootstrap.rank()),
        peers(std::move(table)),
        options(std::move(chosen)),
        peer_timeout(options.peer_timeout) {
    if (!alone()) {
      for (const PeerInfo& peer : peers) {
        unfinished.insert(peer.rank);
      }
      connect(bootstrap);
    }
    if (!linked.empty() || launcher.watching()) {
      tick.expires_at(Clock::now());
      wait_for_tick();
      thread = std::thread([this] { run(); });
    }
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;

  ~Impl() {
    if (thread.joinable()) {
      asio::post(io, [this] { close(); });
      thread.join();
    }
  }

  bool alone() const { return peers.size() == 1; }

  void await_end() const {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return cause || finished; });
  }
  /// Whether the run is over for this rank, by a cause or in order, within the limit.
  bool await_end(milliseconds limit) const {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, limit, [this] { return cause || finished; });
  }

  void throw_if_aborted() const {
    if (aborted.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex);
      throw AbortedError(cause->code, cause->message);
    }
  }

  void connect(Bootstrap& bootstrap) {
    ConnectOptions how{.purpose = Purpose::kControl,
                       .bind_address = options.bind_address,
                       .timeout = options.connect_timeout};
    if (rank == 0) {
      how.accept_from.resize(peers.size() - 1);
      std::iota(how.accept_from.begin(), how.accept_from.end(), 1);
    } else {
      how.connect_to = {0};
    }
    Connections made = connect_ranks(bootstrap, peers, how);
    made.accepted.merge(made.connected);
    const std::vector<std::string> pages = bootstrap.all_gather(std::to_string(page.fd()));
    const auto page_of = [&](const PeerInfo& peer) {
      return StatusPage::of(peer, std::stoi(pages[static_cast<size_t>(peer.rank)]));
    };
    const PeerInfo& self = peers[static_cast<size_t>(rank)];
    if (self.local_rank != 0) {
      hosts_page = page_of(first_of_host(peers, self.host_id));
    }
    for (auto& [peer_rank, fd] : made.accepted) {
      Peer& peer = linked[peer_rank];
      peer.info = peers[static_cast<size_t>(peer_rank)];
      if (peer.info.host_id == self.host_id) {
        peer.page = page_of(peer.info);
      }
      peer.link = std::make_unique<ControlLink>(
          io, std::move(fd),
          ControlLink::Events{
              .on_message = [this, &peer](const wire::Control& m) { on_message(peer, m); },
              .on_end = [this, &peer](ControlLink::End end) { on_end(peer, end); }});
    }
    bootstrap.barrier();  // every page is mapped before a rank may leave
  }

  void run() {
    try {
      io.run();
    } catch (const std::exception& error) {
      log("the control thread failed: {}", error.what());
      ::_exit(static_cast<int>(ExitCode::kInternal));
    }
  }

  void send_all(const wire::Control& message) {
    for (auto& [peer_rank, peer] : linked) {
      peer.link->send(message);
    }
  }

  void end_links() {
    for (auto& [peer_rank, peer] : linked) {
      peer.link->end();
    }
  }

  void on_end(const Peer& peer, ControlLink::End how) {
    if (!finished && !closing) {
      conclude(how == ControlLink::End::kGarbled ? rank_garbled(peer.info, peer.status())
                                                 : rank_died(peer.info, peer.status()));
    }
    stop_when_closed();
  }

  void on_message(Peer& peer, const wire::Control& message) {
    peer.silence = {};
    switch (message.what_case()) {
      case wire::Control::kHeartbeat:
        peer.heard = {message.heartbeat().step(), static_cast<Phase>(message.heartbeat().phase()),
                      message.heartbeat().bucket()};
        break;
      case wire::Control::kReport:
        conclude(unpack(message.report()));
        break;
      case wire::Control::kAbort:
        conclude(unpack(message.abort()));
        break;
      case wire::Control::kFinish:
        on_finish(peer.info.rank);
        break;
      case wire::Control::kFinished:
        set_finished();
        break;
      case wire::Control::kLeave:
        conclude(rank_left(peer.info, peer.status()));
        break;
      case wire::Control::WHAT_NOT_SET:
        break;
    }
  }

  /// This rank reports its own failure; rank 0 decides whether it was the first.
  void raise(const RunCause& mine) {
    if (rank == 0) {
      conclude(mine);
    } else {
      wire::Control message;
      pack(mine, message.mutable_report());
      send_all(message);
    }
  }

  /// The first cause that this rank hears of ends the run here; rank 0 passes it on.
  void conclude(RunCause first) {
    if (cause || finished) {
      return;
    }
    wire::Control message;
    pack(first, rank == 0 ? message.mutable_abort() : message.mutable_report());
    send_all(message);
    end_links();
    if (may_print(first, peers, rank) && (hosts_page ? *hosts_page : page).claim_message()) {
      log_line(first.message);
    }
    const int code = static_cast<int>(first.code);
    leave_timer.expires_after(kLeaveLimit);
    leave_timer.async_wait([code](const boost::system::error_code& cancelled) {
      if (!cancelled) {
        ::_exit(code);
      }
    });
    {
      const std::lock_guard lock(mutex);
      cause = std::move(first);
      aborted.store(true, std::memory_order_release);
    }
    changed.notify_all();
  }

  void finish_here() {
    if (rank == 0) {
      on_finish(0);
    } else {
      wire::Control message;
      message.set_finish(true);
      send_all(message);
    }
  }

  void on_finish(int from) {
    unfinished.erase(from);
    if (unfinished.empty()) {
      wire::Control message;
      message.set_finished(true);
      send_all(message);
      set_finished();
    } else if (from == 0) {  // which alone may work on at the end
      awaiting_last = true;
    }
  }

  void set_finished() {
    {
      const std::lock_guard lock(mutex);
      finished = true;
    }
    changed.notify_all();
    end_links();
  }

  /// The owner goes.
  void close() {
    if (!finished && !cause) {
      wire::Control message;
      message.set_leave(true);
      send_all(message);
      end_links();
    }
    closing = true;
    leave_timer.cancel();
    close_timer.expires_after(kCloseLimit);
    close_timer.async_wait([this](const boost::system::error_code&) { io.stop(); });
    stop_when_closed();
  }

  void stop_when_closed() {
    const bool closed = std::all_of(linked.begin(), linked.end(),
                                    [](const auto& entry) { return !entry.second.link->open(); });
    if (closing && closed) {
      io.stop();
    }
  }

  void wait_for_tick() {
    tick.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) {
        on_tick();
        tick.expires_after(options.heartbeat_interval);
        wait_for_tick();
      }
    });
  }

  void on_tick() {
    if (launcher.gone()) {
      ::_exit(static_cast<int>(ExitCode::kPeerLost));
    }
    const Clock::duration ran = running.tick(Clock::now());
    if (finished || cause) {
      return;
    }
    wire::Control message;
    const RankStatus mine = page.read();
    message.mutable_heartbeat()->set_step(mine.step);
    message.mutable_heartbeat()->set_phase(static_cast<uint32_t>(mine.phase));
    message.mutable_heartbeat()->set_bucket(mine.bucket);
    for (auto& [peer_rank, peer] : linked) {
      if (peer.link->idle()) {
        peer.link->send(message);
      }
      peer.silence += ran;
      // One interval more, because the first tick after a frame counts time before it.
      if (peer.silence >= peer_timeout + options.heartbeat_interval) {
        conclude(rank_stopped(peer.info, peer.status(), peer_timeout));
        return;
      }
    }
    if (awaiting_last &&
        (awaited_last += ran) >= options.finish_timeout + options.heartbeat_interval) {
      const int late = *unfinished.begin();
      conclude(rank_late(peers[static_cast<size_t>(late)],
                         late == 0 ? mine : linked.at(late).status(), options.finish_timeout));
    }
  }

  const int rank;
  const PeerTable peers;
  const ControlOptions options;
  milliseconds peer_timeout;  // the control thread's, once it runs
  StatusPage page;
  std::unique_ptr<const StatusPage> hosts_page;  // of this host's first rank; null: it is `page`
  LauncherWatch launcher;
  std::atomic<bool> aborted{false};

  mutable std::mutex mutex;  // of `cause` and `finished`, which the control thread alone writes
  mutable std::condition_variable changed;
  std::optional<RunCause> cause;
  bool finished = false;

  asio::io_context io{1};
  asio::steady_timer tick{io};
  asio::steady_timer leave_timer{io};
  asio::steady_timer close_timer{io};
  std::map<int, Peer> linked;  // rank 0: to all others; others: to rank 0
  RunningTime running{options.heartbeat_interval, Clock::now()};
  std::set<int> unfinished;        // rank 0 only
  bool awaiting_last = false;      // rank 0 has finished, others have not
  Clock::duration awaited_last{};  // since then, as a silence is counted
  bool closing = false;
  std::thread thread;
};

ControlPlane::ControlPlane(Bootstrap& bootstrap, const PeerTable& peers,
                           const ControlOptions& options)
    : impl_(std::make_unique<Impl>(bootstrap, peers, options)) {}

ControlPlane::~ControlPlane() = default;

void ControlPlane::set_step(int64_t step) noexcept {
  impl_->page.set_step(step);
}

void ControlPlane::set_phase(Phase phase) noexcept {
  impl_->page.set_phase(phase);
}

void ControlPlane::set_bucket(int bucket) noexcept {
  impl_->page.set_bucket(bucket);
}

void ControlPlane::set_peer_timeout(milliseconds timeout) {
  asio::post(impl_->io, [impl = impl_.get(), timeout] { impl->peer_timeout = timeout; });
}

bool ControlPlane::aborted() const noexcept {
  return impl_->aborted.load(std::memory_order_acquire);
}

void ControlPlane::throw_if_aborted() const {
  impl_->throw_if_aborted();
}

void ControlPlane::await_cause() const {
  impl_->await_end(kCauseLimit);
  impl_->throw_if_aborted();
}

void ControlPlane::report(const Error& error) noexcept {
  if (impl_->alone() || dynamic_cast<const AbortedError*>(&error) != nullptr) {
    return;
  }
  try {
    RunCause mine =
        rank_failed(impl_->peers[static_cast<size_t>(impl_->rank)], impl_->page.read(), error);
    asio::post(impl_->io, [impl = impl_.get(), mine] { impl->raise(mine); });
    if (!impl_->await_end(kReportLimit)) {
      asio::post(impl_->io, [impl = impl_.get(), mine] { impl->conclude(mine); });
      impl_->await_end(kReportLimit);
    }
  } catch (const std::exception&) {
    // Not even the report could be made: the closing connection tells the others.
    ::_exit(static_cast<int>(error.code()));
  }
}

void ControlPlane::finish() {
  if (impl_->alone()) {
    return;
  }
  asio::post(impl_->io, [impl = impl_.get()] { impl->finish_here(); });
  impl_->await_end();
  impl_->throw_if_aborted();
}

}  // namespace lockstep
