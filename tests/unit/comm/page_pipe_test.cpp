#include "comm/page_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

std::pair<UniqueFd, UniqueFd> connected_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  EXPECT_EQ(::fcntl(ends[1], F_SETFL, 0), 0);  // the receiver waits
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

TEST(PagePipe, SendsMoreThanThePipeAndTheSocketHold) {
  auto [sender, receiver] = connected_sockets();
  std::vector<uint32_t> numbers(3 << 18);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<uint32_t>(i * 2654435761U);
  }
  // Begins and ends within a page.
  const auto data = std::as_bytes(std::span(numbers)).subspan(12, (3 << 20) - 100);
  std::vector<std::byte> received;
  std::thread reader([&, in = std::move(receiver)] {
    std::array<std::byte, 10000> bytes{};
    for (ssize_t count = 0; (count = ::read(in.get(), bytes.data(), bytes.size())) > 0;) {
      received.insert(received.end(), bytes.begin(), bytes.begin() + count);
    }
  });
  PagePipe pages;
  for (size_t sent = 0; sent < data.size();) {
    const std::optional<size_t> count = pages.send(sender.get(), data.subspan(sent), false);
    ASSERT_TRUE(count.has_value());
    sent += *count;
  }
  sender.reset();
  reader.join();
  EXPECT_TRUE(std::equal(received.begin(), received.end(), data.begin(), data.end()));
}

TEST(PagePipe, NeitherWaitsNorLosesBytesWhenTheSocketIsFull) {
  const auto [sender, receiver] = connected_sockets();
  const std::vector<std::byte> data(4 << 20, std::byte{7});
  PagePipe pages;
  size_t sent = 0;
  while (const size_t count =
             pages.send(sender.get(), std::span(data).subspan(sent), true).value()) {
    sent += count;
  }
  ASSERT_LT(sent, data.size());
  std::vector<std::byte> received(data.size());
  size_t got = 0;
  while (got < sent) {
    const ssize_t count = ::read(receiver.get(), received.data() + got, received.size() - got);
    ASSERT_GT(count, 0);
    got += static_cast<size_t>(count);
  }
  EXPECT_EQ(got, sent);
  EXPECT_GT(pages.send(sender.get(), std::span(data).subspan(sent), true).value(), 0U);
}

TEST(PagePipe, SaysNoWithoutASignalWhenTheConnectionIsClosed) {
  auto [sender, receiver] = connected_sockets();
  receiver.reset();
  const std::vector<std::byte> data(100000, std::byte{7});
  PagePipe pages;
  EXPECT_EQ(pages.send(sender.get(), data, false), std::nullopt);
  sigset_t pending{};
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

}  // namespace
}  // namespace lockstep
