#include "comm/control_plane.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "comm/control_message.h"
#include "comm/control_peers.h"
#include "comm/finish_roll.h"
#include "comm/launcher_watch.h"
#include "comm/run_cause.h"
#include "comm/run_outcome.h"
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

}  // namespace

struct ControlPlane::Impl {
  Impl(Bootstrap& bootstrap, PeerTable table, ControlOptions chosen)
      : rank(bootstrap.rank()),
        peers(std::move(table)),
        options(std::move(chosen)),
        peer_timeout(options.peer_timeout) {
    if (!alone()) {
      connect(bootstrap);
    }
    if (!others.linked.empty() || launcher.watching()) {
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

  void connect(Bootstrap& bootstrap) {
    others = connect_control(bootstrap, peers, options, page);
    for (auto& [peer_rank, peer] : others.linked) {
      const ControlLink::Events events{
          .on_message = [this, &peer = peer](const wire::Control& m) { on_message(peer, m); },
          .on_end = [this, &peer = peer](ControlLink::End end) { on_end(peer, end); }};
      peer.link = std::make_unique<ControlLink>(io, std::move(peer.socket), events);
    }
  }

  void run() {
    try {
      io.run();
    } catch (const std::exception& error) {
      log("the control thread failed: {}", error.what());
      ::_exit(static_cast<int>(ExitCode::kInternal));
    }
  }

  void on_end(const ControlPeer& peer, ControlLink::End how) {
    if (!closing) {
      conclude(how == ControlLink::End::kGarbled ? rank_garbled(peer.info, peer.status())
                                                 : rank_died(peer.info, peer.status()));
    }
    stop_when_closed();
  }

  void on_message(ControlPeer& peer, const wire::Control& message) {
    peer.silence = {};
    switch (message.what_case()) {
      case wire::Control::kHeartbeat:
        peer.heard = status_of(message.heartbeat());
        break;
      case wire::Control::kReport:
        conclude(cause_of(message.report()));
        break;
      case wire::Control::kAbort:
        conclude(cause_of(message.abort()));
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
      others.send(report_message(mine));
    }
  }

  /// The first cause that this rank hears of ends the run here; rank 0 passes it on.
  void conclude(RunCause first) {
    if (outcome.settled()) {
      return;
    }
    others.send(rank == 0 ? abort_message(first) : report_message(first));
    others.end();
    if (may_print(first, peers, rank) &&
        (others.hosts_page ? *others.hosts_page : page).claim_message()) {
      log_line(first.message);
    }
    const int code = static_cast<int>(first.code);
    leave_timer.expires_after(kLeaveLimit);
    leave_timer.async_wait([code](const boost::system::error_code& cancelled) {
      if (!cancelled) {
        ::_exit(code);
      }
    });
    outcome.abort(std::move(first));
  }

  void finish_here() {
    if (rank == 0) {
      on_finish(0);
    } else {
      others.send(finish_message());
    }
  }

  void on_finish(int from) {
    roll.finish(from);
    if (roll.complete()) {
      others.send(finished_message());
      set_finished();
    }
  }

  void set_finished() {
    outcome.finish();
    others.end();
  }

  /// The owner goes.
  void close() {
    if (!outcome.settled()) {
      others.send(leave_message());
      others.end();
    }
    closing = true;
    leave_timer.cancel();
    close_timer.expires_after(kCloseLimit);
    close_timer.async_wait([this](const boost::system::error_code&) { io.stop(); });
    stop_when_closed();
  }

  void stop_when_closed() {
    if (closing && others.closed()) {
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
    if (outcome.settled()) {
      return;
    }
    // One interval more, because the first tick after a frame counts time before it.
    const ControlPeer* const silent =
        others.beat(heartbeat_message(page.read()), ran, peer_timeout + options.heartbeat_interval);
    if (silent != nullptr) {
      conclude(rank_stopped(silent->info, silent->status(), peer_timeout));
      return;
    }
    if (rank == 0) {
      if (const std::optional<int> late = roll.late(ran)) {
        const ControlPeer& peer = others.linked.at(*late);
        conclude(rank_late(peer.info, peer.status(), options.finish_timeout));
      }
    }
  }

  const int rank;
  const PeerTable peers;
  const ControlOptions options;
  milliseconds peer_timeout;  // the control thread's, once it runs
  StatusPage page;
  LauncherWatch launcher;
  RunOutcome outcome;  // which the control thread settles

  asio::io_context io{1};
  asio::steady_timer tick{io};
  asio::steady_timer leave_timer{io};
  asio::steady_timer close_timer{io};
  ControlPeers others;
  RunningTime running{options.heartbeat_interval, Clock::now()};
  // Rank 0's counts. One interval more, as for silence.
  FinishRoll roll{static_cast<int>(peers.size()),
                  options.finish_timeout + options.heartbeat_interval};
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
  return impl_->outcome.aborted();
}

void ControlPlane::throw_if_aborted() const {
  impl_->outcome.throw_if_aborted();
}

void ControlPlane::await_cause() const {
  impl_->outcome.await(kCauseLimit);
  impl_->outcome.throw_if_aborted();
}

void ControlPlane::report(const Error& error) noexcept {
  if (impl_->alone() || dynamic_cast<const AbortedError*>(&error) != nullptr) {
    return;
  }
  try {
    RunCause mine =
        rank_failed(impl_->peers[static_cast<size_t>(impl_->rank)], impl_->page.read(), error);
    asio::post(impl_->io, [impl = impl_.get(), mine] { impl->raise(mine); });
    if (!impl_->outcome.await(kReportLimit)) {
      asio::post(impl_->io, [impl = impl_.get(), mine] { impl->conclude(mine); });
      impl_->outcome.await(kReportLimit);
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
  impl_->outcome.await();
  impl_->outcome.throw_if_aborted();
}

}  // namespace lockstep
