#include "comm/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
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
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kHandshakeLimit{5};
constexpr std::chrono::milliseconds kRetryPause{50};
constexpr size_t kMaxHalfOpen = 64;

/// Lets a connection within a host run without BBR, the default of some systems, which waits for a
/// timer between packets and halves the bandwidth of loopback. Before it is made: a socket that BBR
/// has had once keeps its timer. Best effort: where the other is not in the kernel, the default
/// stays.
void avoid_pacing(int socket) {
  constexpr std::string_view kUnpaced = "cubic";
  ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(),
               static_cast<socklen_t>(kUnpaced.size()));
}

/// A socket that is closed when its time is up, which ends every operation on it.
class TimedSocket {
 public:
  explicit TimedSocket(asio::io_context& io) : socket_(io), timer_(io) {}
  explicit TimedSocket(tcp::socket socket)
      : socket_(std::move(socket)), timer_(socket_.get_executor()) {}

  tcp::socket& socket() { return socket_; }

  static void limit(const std::shared_ptr<TimedSocket>& self, Clock::duration limit) {
    self->timer_.expires_after(limit);
    self->timer_.async_wait([weak = std::weak_ptr(self)](const error_code& failed) {
      const auto alive = weak.lock();
      // A limit that was lifted when this was called already is no limit either.
      if (!failed && alive && alive->timer_.expiry() <= Clock::now()) {
        alive->close();
      }
    });
  }
  void lift_limit() { timer_.expires_at(Clock::time_point::max()); }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

  /// Hands the socket over as Connections describes it.
  UniqueFd release() {
    lift_limit();
    socket_.set_option(tcp::no_delay(true));
    socket_.native_non_blocking(true);
    UniqueFd fd(socket_.release());
    if (::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
      throw IoError("cannot mark a socket close-on-exec: {}", std::strerror(errno));
    }
    return fd;
  }

 private:
  tcp::socket socket_;
  asio::steady_timer timer_;
};

/// A connection that comes to this rank, until it is proven or dropped.
struct Inbound : TimedSocket {
  Inbound(tcp::socket socket, const GroupKey& key, const HandshakeTerms& terms)
      : TimedSocket(std::move(socket)), handshake(key, terms) {}

  HandshakeServer handshake;
  HandshakeHello hello{};
  HandshakeProof proof{};
  int rank = -1;  ///< as it claims
};

/// One attempt of this rank to connect to another.
struct Outbound : TimedSocket {
  Outbound(asio::io_context& io, const GroupKey& key, const HandshakeTerms& terms, size_t number)
      : TimedSocket(io), handshake(key, terms), rank(terms.server), attempt(number) {}

  HandshakeClient handshake;
  HandshakeChallenge challenge{};
  HandshakeProof proof{};
  int rank;
  size_t attempt;
};

/// Makes the connections of one rank, all at once on the calling thread.
class Rendezvous {
 public:
  Rendezvous(Bootstrap& bootstrap, const PeerTable& peers, const ConnectOptions& options)
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
      accept_next(acceptor);
    }
    for (const int peer : options_.connect_to) {
      try_connect(peer, 0);
    }
    while (!complete() && !deadline.passed()) {
      io_.run_one_until(deadline.end());
    }
    if (!complete()) {
      throw TimeoutError("{}", missing());
    }
    return std::move(made_);
  }

 private:
  bool complete() const { return awaited_.empty() && unreached_.empty(); }

  HandshakeTerms terms(int client, int server) const {
    return {options_.purpose, client, server, bootstrap_.world_size()};
  }

  void listen(const std::string& address) {
    const tcp::endpoint endpoint(asio::ip::make_address(address), 0);
    tcp::acceptor acceptor(io_, endpoint.protocol());
    ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    if (endpoint.address().is_loopback()) {
      avoid_pacing(acceptor.native_handle());
    }
    error_code failed;
    acceptor.bind(endpoint, failed);
    if (!failed) {
      acceptor.listen(asio::socket_base::max_listen_connections, failed);
    }
    if (failed) {
      throw IoError("cannot listen on {}: {}; choose another address with --bind-address", address,
                    failed.message());
    }
    if (bootstrap_.rank() == 0 && !endpoint.address().is_loopback()) {
      log("listens on {} port {} until all ranks are here", address,
          acceptor.local_endpoint().port());
    }
    acceptors_.push_back(std::move(acceptor));
  }

  /// Spreads the addresses of all ranks and the key.
  void exchange() {
    wire::Rendezvous mine;
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
      wire::Rendezvous theirs;
      LOCKSTEP_CHECK(theirs.ParseFromString(bytes), "a rank's addresses cannot be read");
      std::vector<tcp::endpoint>& endpoints = endpoints_.emplace_back();
      for (int i = 0; i < theirs.addresses_size(); ++i) {
        endpoints.emplace_back(asio::ip::make_address(theirs.addresses(i)),
                               static_cast<uint16_t>(theirs.ports(i)));
      }
      if (!theirs.key().empty()) {
        key_ = std::make_unique<GroupKey>(GroupKey::from_bytes(theirs.key()));
      }
    }
    LOCKSTEP_CHECK(key_ != nullptr, "rank 0 sent no key");
  }

  /// A completion handler that goes on with `next`, or ends the session when its connection broke.
  template <class Session>
  auto then(std::shared_ptr<Session> session,
            void (Rendezvous::*next)(const std::shared_ptr<Session>&)) {
    return [this, session = std::move(session), next](const error_code& failed, size_t = 0) {
      if (failed) {
        drop(session, failed.message());
      } else {
        (this->*next)(session);
      }
    };
  }

  void after_pause(std::function<void()> next) {
    auto timer = std::make_shared<asio::steady_timer>(io_, kRetryPause);
    timer->async_wait([timer, next = std::move(next)](const error_code&) { next(); });
  }

  // --- the side that accepts ---

  void accept_next(tcp::acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](const error_code& failed, tcp::socket socket) {
      if (failed) {  // out of descriptors, or a client that is gone already: both pass
        after_pause([this, &acceptor] { accept_next(acceptor); });
        return;
      }
      receive(std::make_shared<Inbound>(std::move(socket), *key_, terms(-1, bootstrap_.rank())));
      accept_next(acceptor);
    });
  }

  void receive(const std::shared_ptr<Inbound>& inbound) {
    TimedSocket::limit(inbound, kHandshakeLimit);
    make_room();
    half_open_.push_back(inbound);
    asio::async_read(inbound->socket(), asio::buffer(inbound->hello),
                     then(inbound, &Rendezvous::on_hello));
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

  void on_hello(const std::shared_ptr<Inbound>& inbound) {
    const std::optional<int> rank = inbound->handshake.read(inbound->hello);
    if (rank) {
      inbound->rank = *rank;
      asio::async_write(inbound->socket(), asio::buffer(inbound->handshake.challenge()),
                        then(inbound, &Rendezvous::on_challenge_sent));
    }
  }

  void on_challenge_sent(const std::shared_ptr<Inbound>& inbound) {
    asio::async_read(inbound->socket(), asio::buffer(inbound->proof),
                     then(inbound, &Rendezvous::on_client_proof));
  }

  void on_client_proof(const std::shared_ptr<Inbound>& inbound) {
    if (!inbound->handshake.accepts(inbound->proof)) {
      return;
    }
    if (!awaited_.contains(inbound->rank)) {
      log("refused a connection of rank {}, which is connected already or not expected",
          inbound->rank);
      return;
    }
    // From here on the member may count this connection as made: neither the crowd of those that
    // are not proven nor the time may close it any more.
    inbound->lift_limit();
    std::erase_if(half_open_, [&](const auto& client) { return client.lock() == inbound; });
    inbound->proof = inbound->handshake.welcome();
    asio::async_write(inbound->socket(), asio::buffer(inbound->proof),
                      then(inbound, &Rendezvous::on_welcomed));
  }

  void on_welcomed(const std::shared_ptr<Inbound>& inbound) {
    if (awaited_.erase(inbound->rank) != 0) {
      made_.accepted.emplace(inbound->rank, inbound->release());
    }
  }

  /// A stranger, or a member that comes again: without a word.
  void drop(const std::shared_ptr<Inbound>& inbound, const std::string& /*reason*/) {
    inbound->close();
  }

  // --- the side that connects ---

  void try_connect(int rank, size_t attempt) {
    const std::vector<tcp::endpoint>& endpoints = endpoints_[static_cast<size_t>(rank)];
    LOCKSTEP_CHECK(!endpoints.empty(), "rank {} does not listen", rank);
    const auto outbound =
        std::make_shared<Outbound>(io_, *key_, terms(bootstrap_.rank(), rank), attempt);
    TimedSocket::limit(outbound, kHandshakeLimit);
    const tcp::endpoint& endpoint = endpoints[attempt % endpoints.size()];
    outbound->socket().open(endpoint.protocol());
    if (endpoint.address().is_loopback()) {
      avoid_pacing(outbound->socket().native_handle());
    }
    outbound->socket().async_connect(endpoint, then(outbound, &Rendezvous::on_connected));
  }

  void on_connected(const std::shared_ptr<Outbound>& outbound) {
    asio::async_write(outbound->socket(), asio::buffer(outbound->handshake.hello()),
                      then(outbound, &Rendezvous::on_hello_sent));
  }

  void on_hello_sent(const std::shared_ptr<Outbound>& outbound) {
    asio::async_read(outbound->socket(), asio::buffer(outbound->challenge),
                     then(outbound, &Rendezvous::on_challenge));
  }

  void on_challenge(const std::shared_ptr<Outbound>& outbound) {
    outbound->proof = outbound->handshake.answer(outbound->challenge);
    asio::async_write(outbound->socket(), asio::buffer(outbound->proof),
                      then(outbound, &Rendezvous::on_proof_sent));
  }

  void on_proof_sent(const std::shared_ptr<Outbound>& outbound) {
    // From here on the server may count this connection as made: leaving it for another attempt
    // would leave the server with a dead one. It answers or closes within its own limit.
    outbound->lift_limit();
    asio::async_read(outbound->socket(), asio::buffer(outbound->proof),
                     then(outbound, &Rendezvous::on_server_proof));
  }

  void on_server_proof(const std::shared_ptr<Outbound>& outbound) {
    if (outbound->handshake.accepts(outbound->proof)) {
      unreached_.erase(outbound->rank);
      made_.connected.emplace(outbound->rank, outbound->release());
    } else {
      drop(outbound, "it could not prove that it belongs to this run");
    }
  }

  void drop(const std::shared_ptr<Outbound>& outbound, const std::string& reason) {
    last_failure_ = reason;
    outbound->close();
    after_pause([this, rank = outbound->rank, attempt = outbound->attempt + 1] {
      try_connect(rank, attempt);
    });
  }

  std::string name(int rank) const { return rank_name(peers_[static_cast<size_t>(rank)]); }

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
  std::deque<tcp::acceptor> acceptors_;                // handlers hold references
  std::vector<std::vector<tcp::endpoint>> endpoints_;  // by rank
  std::unique_ptr<const GroupKey> key_;
  std::deque<std::weak_ptr<TimedSocket>> half_open_;  // oldest first
  std::string last_failure_;
  Connections made_;
};

}  // namespace

Connections connect_ranks(Bootstrap& bootstrap, const PeerTable& peers,
                          const ConnectOptions& options) {
  return Rendezvous(bootstrap, peers, options).connect();
}

}  // namespace lockstep
