#include "comm/connection.h"

#include <fcntl.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <exception>
#include <memory>
#include <set>
#include <utility>

#include "comm/handshake.h"
#include "comm/listen_address.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "wire.pb.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
using asio::use_awaitable;
using asio::ip::tcp;

constexpr std::chrono::seconds kHandshakeLimit{5};
constexpr std::chrono::milliseconds kRetryPause{50};
constexpr size_t kMaxHalfOpen = 64;

/// A socket that is closed when its time is up, which ends every operation on it.
class TimedSocket {
 public:
  explicit TimedSocket(asio::io_context& io) : socket_(io), timer_(io) {}
  explicit TimedSocket(tcp::socket socket)
      : socket_(std::move(socket)), timer_(socket_.get_executor()) {}

  tcp::socket& socket() { return socket_; }

  static void limit(const std::shared_ptr<TimedSocket>& self, Clock::duration limit) {
    self->timer_.expires_after(limit);
    self->timer_.async_wait([weak = std::weak_ptr(self)](const boost::system::error_code& failed) {
      const auto alive = weak.lock();
      if (!failed && alive) {
        alive->close();
      }
    });
  }
  void lift_limit() { timer_.cancel(); }
  void close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

  /// Hands the socket over as Connections describes it.
  UniqueFd release() {
    lift_limit();
    socket_.set_option(tcp::no_delay(true));
    socket_.native_non_blocking(true);
    UniqueFd fd(socket_.release());
    if (::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
      throw IoError("cannot mark a socket close-on-exec");
    }
    return fd;
  }

 private:
  tcp::socket socket_;
  asio::steady_timer timer_;
};

template <size_t Size>
asio::awaitable<std::array<uint8_t, Size>> read_message(tcp::socket& socket) {
  std::array<uint8_t, Size> message{};
  co_await asio::async_read(socket, asio::buffer(message), use_awaitable);
  co_return message;
}

/// Makes the connections of one rank, all at once on the calling thread.
class Meeting {
 public:
  Meeting(Bootstrap& bootstrap, const PeerTable& peers, const ConnectOptions& options)
      : bootstrap_(bootstrap),
        peers_(peers),
        options_(options),
        awaited_(options.accept_from.begin(), options.accept_from.end()),
        unreached_(options.connect_to.begin(), options.connect_to.end()) {
    if (!awaited_.empty()) {
      for (const std::string& address : listen_addresses(peers, options.bind_address)) {
        listen(address);
      }
    }
    exchange();
  }

  Connections connect() {
    const Deadline deadline(options_.timeout);
    for (tcp::acceptor& acceptor : acceptors_) {
      spawn(accept_all(acceptor));
    }
    for (const int peer : options_.connect_to) {
      spawn(reach(peer));
    }
    while (!complete() && !failure_ && !deadline.passed()) {
      io_.run_one_until(deadline.end());
    }
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    if (!complete()) {
      throw TimeoutError("{}", missing());
    }
    return std::move(made_);
  }

 private:
  bool complete() const { return awaited_.empty() && unreached_.empty(); }

  void spawn(asio::awaitable<void> body) {
    asio::co_spawn(io_, std::move(body), [this](const std::exception_ptr& failure) {
      failure_ = failure_ ? failure_ : failure;
    });
  }

  void listen(const std::string& address) {
    const tcp::endpoint endpoint(asio::ip::make_address(address), 0);
    tcp::acceptor acceptor(io_, endpoint.protocol());
    ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    boost::system::error_code failed;
    acceptor.bind(endpoint, failed);
    if (!failed) {
      acceptor.listen(asio::socket_base::max_listen_connections, failed);
    }
    if (failed) {
      throw IoError("cannot listen on {}: {}", address, failed.message());
    }
    if (bootstrap_.rank() == 0 && !endpoint.address().is_loopback()) {
      log("listens on {} port {} until all ranks are here", address,
          acceptor.local_endpoint().port());
    }
    acceptors_.push_back(std::move(acceptor));
  }

  /// Spreads the addresses of all ranks and the key.
  void exchange() {
    wire::Meeting mine;
    for (const tcp::acceptor& acceptor : acceptors_) {
      const tcp::endpoint endpoint = acceptor.local_endpoint();
      mine.add_addresses(endpoint.address().to_string());
      mine.add_ports(endpoint.port());
    }
    if (bootstrap_.rank() == 0) {
      const GroupKey key = GroupKey::random();
      mine.set_key(key.bytes().data(), key.bytes().size());
    }
    for (const std::string& bytes : bootstrap_.all_gather(mine.SerializeAsString())) {
      wire::Meeting meeting;
      LOCKSTEP_CHECK(meeting.ParseFromString(bytes), "a rank's addresses cannot be read");
      std::vector<tcp::endpoint>& endpoints = endpoints_.emplace_back();
      for (int i = 0; i < meeting.addresses_size(); ++i) {
        endpoints.emplace_back(asio::ip::make_address(meeting.addresses(i)),
                               static_cast<uint16_t>(meeting.ports(i)));
      }
      if (!meeting.key().empty()) {
        key_ = std::make_unique<GroupKey>(GroupKey::from_bytes(meeting.key()));
      }
    }
    LOCKSTEP_CHECK(key_ != nullptr, "rank 0 sent no key");
  }

  asio::awaitable<void> accept_all(tcp::acceptor& acceptor) {
    for (;;) {
      boost::system::error_code failed;
      tcp::socket socket =
          co_await acceptor.async_accept(asio::redirect_error(use_awaitable, failed));
      if (failed) {  // out of descriptors, or a client that is gone already: both pass
        asio::steady_timer pause(io_, kRetryPause);
        co_await pause.async_wait(use_awaitable);
        continue;
      }
      auto client = std::make_shared<TimedSocket>(std::move(socket));
      TimedSocket::limit(client, kHandshakeLimit);
      make_room();
      half_open_.push_back(client);
      spawn(serve(std::move(client)));
    }
  }

  /// Members of the group need milliseconds, so the oldest of too many is a stranger; a member that
  /// is dropped by mistake comes again.
  void make_room() {
    std::erase_if(half_open_, [](const auto& client) { return client.expired(); });
    if (half_open_.size() >= kMaxHalfOpen) {
      if (const auto oldest = half_open_.front().lock()) {
        oldest->close();
      }
      half_open_.pop_front();
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<TimedSocket> client) {
    try {
      tcp::socket& socket = client->socket();
      HandshakeServer handshake(*key_, {.purpose = options_.purpose,
                                        .server = bootstrap_.rank(),
                                        .world_size = bootstrap_.world_size()});
      const auto peer = handshake.read(co_await read_message<sizeof(HandshakeHello)>(socket));
      if (!peer) {
        co_return;
      }
      co_await asio::async_write(socket, asio::buffer(handshake.challenge()), use_awaitable);
      if (!handshake.accepts(co_await read_message<sizeof(HandshakeProof)>(socket))) {
        co_return;
      }
      if (!awaited_.contains(*peer)) {
        log("refused a connection of rank {}, which is connected already or not expected", *peer);
        co_return;
      }
      const HandshakeProof welcome = handshake.welcome();
      co_await asio::async_write(socket, asio::buffer(welcome), use_awaitable);
      if (awaited_.erase(*peer) != 0) {
        made_.accepted.emplace(*peer, client->release());
      }
    } catch (const boost::system::system_error&) {
      // A stranger, or a member that comes again: dropped without a word.
    }
  }

  asio::awaitable<void> reach(int peer) {
    const std::vector<tcp::endpoint>& endpoints = endpoints_[static_cast<size_t>(peer)];
    LOCKSTEP_CHECK(!endpoints.empty(), "rank {} does not listen", peer);
    for (size_t attempt = 0;; ++attempt) {
      const tcp::endpoint& endpoint = endpoints[attempt % endpoints.size()];
      auto server = std::make_shared<TimedSocket>(io_);
      TimedSocket::limit(server, kHandshakeLimit);
      try {
        if (co_await introduce(*server, endpoint, peer)) {
          made_.connected.emplace(peer, server->release());
          unreached_.erase(peer);
          co_return;
        }
        last_failure_ = "it could not prove that it belongs to this run";
      } catch (const boost::system::system_error& error) {
        last_failure_ = error.code().message();
      }
      asio::steady_timer pause(io_, kRetryPause);
      co_await pause.async_wait(use_awaitable);
    }
  }

  asio::awaitable<bool> introduce(TimedSocket& server, const tcp::endpoint& endpoint, int peer) {
    tcp::socket& socket = server.socket();
    co_await socket.async_connect(endpoint, use_awaitable);
    HandshakeClient handshake(*key_, {.purpose = options_.purpose,
                                      .client = bootstrap_.rank(),
                                      .server = peer,
                                      .world_size = bootstrap_.world_size()});
    co_await asio::async_write(socket, asio::buffer(handshake.hello()), use_awaitable);
    const HandshakeProof proof =
        handshake.answer(co_await read_message<sizeof(HandshakeChallenge)>(socket));
    co_await asio::async_write(socket, asio::buffer(proof), use_awaitable);
    // From here on the server may count this connection as made: leaving it for another attempt
    // would leave the server with a dead one. It answers or closes within its own limit.
    server.lift_limit();
    co_return handshake.accepts(co_await read_message<sizeof(HandshakeProof)>(socket));
  }

  std::string name(int rank) const {
    const PeerInfo& peer = peers_[static_cast<size_t>(rank)];
    return fmt::format("rank {} (host {}, pid {})", rank, peer.host, peer.pid);
  }

  std::string missing() const {
    std::string text;
    for (const int rank : awaited_) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", name(rank));
    }
    for (const int rank : unreached_) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", name(rank));
      for (const tcp::endpoint& endpoint : endpoints_[static_cast<size_t>(rank)]) {
        text += fmt::format(" at {} port {}", endpoint.address().to_string(), endpoint.port());
      }
    }
    return fmt::format(
        "no connection within {:g} s with {}{}; see whether it still runs and whether a firewall "
        "lies between the hosts, or choose the network with --bind-address",
        std::chrono::duration<double>(options_.timeout).count(), text,
        last_failure_.empty() ? "" : fmt::format(" (last attempt: {})", last_failure_));
  }

  asio::io_context io_{1};
  Bootstrap& bootstrap_;
  const PeerTable& peers_;
  const ConnectOptions& options_;
  std::set<int> awaited_;
  std::set<int> unreached_;
  std::deque<tcp::acceptor> acceptors_;                // coroutines hold references
  std::vector<std::vector<tcp::endpoint>> endpoints_;  // by rank
  std::unique_ptr<const GroupKey> key_;
  std::deque<std::weak_ptr<TimedSocket>> half_open_;  // oldest first
  std::string last_failure_;
  std::exception_ptr failure_;
  Connections made_;
};

}  // namespace

Connections connect_ranks(Bootstrap& bootstrap, const PeerTable& peers,
                          const ConnectOptions& options) {
  return Meeting(bootstrap, peers, options).connect();
}

}  // namespace lockstep
