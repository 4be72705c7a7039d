#include "comm/control_link.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <string>
#include <utility>

#include "wire.pb.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kMaxBodyBytes = 8192;

/// Length of the body (32 bits, little-endian), then the body.
std::string frame_of(const wire::Control& message) {
  const std::string body = message.SerializeAsString();
  std::string frame;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    frame += static_cast<char>(body.size() >> shift);
  }
  return frame + body;
}

uint32_t body_bytes(const std::array<uint8_t, 4>& prefix) {
  return uint32_t{prefix[0]} | uint32_t{prefix[1]} << 8U | uint32_t{prefix[2]} << 16U |
         uint32_t{prefix[3]} << 24U;
}

tcp protocol_of(const UniqueFd& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4();
}

}  // namespace

struct ControlLink::Impl {
  Impl(asio::io_context& io, UniqueFd fd, Events handlers)
      : socket(io), events(std::move(handlers)) {
    const tcp protocol = protocol_of(fd);
    socket.assign(protocol, fd.release());
    read_prefix();
  }

  void read_prefix() {
    asio::async_read(socket, asio::buffer(prefix), [this](const error_code& failed, size_t) {
      if (failed) {
        finish(End::kClosed);
      } else if (body_bytes(prefix) > kMaxBodyBytes) {
        finish(End::kGarbled);
      } else {
        body.resize(body_bytes(prefix));
        read_body();
      }
    });
  }

  void read_body() {
    asio::async_read(socket, asio::buffer(body), [this](const error_code& failed, size_t) {
      wire::Control message;
      if (failed) {
        finish(End::kClosed);
      } else if (!message.ParseFromString(body)) {
        finish(End::kGarbled);
      } else {
        events.on_message(message);
        read_prefix();
      }
    });
  }

  void finish(End how) {
    open = false;
    events.on_end(how);
  }

  void send_first() {
    asio::async_write(socket, asio::buffer(outbox.front()),
                      [this](const error_code& failed, size_t) {
                        outbox.pop_front();
                        if (failed) {
                          outbox.clear();  // the reading side hears of it
                        }
                        if (outbox.empty()) {
                          shut_down_if_ended();
                        } else {
                          send_first();
                        }
                      });
  }

  void shut_down_if_ended() {
    if (ended && open && outbox.empty()) {
      error_code ignored;
      socket.shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  tcp::socket socket;
  Events events;
  std::array<uint8_t, 4> prefix{};
  std::string body;
  std::deque<std::string> outbox;  // frames; the first is on its way
  bool open = true;
  bool ended = false;
};

ControlLink::ControlLink(asio::io_context& io, UniqueFd socket, Events events)
    : impl_(std::make_unique<Impl>(io, std::move(socket), std::move(events))) {}

ControlLink::~ControlLink() = default;

void ControlLink::send(const wire::Control& message) {
  if (!impl_->open || impl_->ended) {
    return;
  }
  impl_->outbox.push_back(frame_of(message));
  if (impl_->outbox.size() == 1) {
    impl_->send_first();
  }
}

bool ControlLink::idle() const {
  return impl_->outbox.empty();
}

void ControlLink::end() {
  impl_->ended = true;
  impl_->shut_down_if_ended();
}

bool ControlLink::open() const {
  return impl_->open;
}

}  // namespace lockstep
