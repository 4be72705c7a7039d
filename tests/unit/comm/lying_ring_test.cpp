// Rings whose links lose, repeat, change or delay what they carry.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>

#include "comm/socket_frame.h"
#include "comm/socket_transport.h"
#include "support/faulty_relay.h"
#include "support/faulty_send_edge.h"
#include "unit/comm/ring_of_threads.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

/// One all-reduce of 40 segments with a fault in what rank 0 sends; throws what a rank throws
/// first.
void run_with_fault(Links links, Fault fault) {
  RingSetup setup = {2, links, 40 * kS, milliseconds(300)};
  setup.wrap = [&](int rank, std::unique_ptr<SendEdge> edge) -> std::unique_ptr<SendEdge> {
    if (rank != 0) {
      return edge;
    }
    return std::make_unique<FaultySendEdge>(std::move(edge), fault, 5);
  };
  run_ring(setup, kNoAbort, [&](int rank, RingExecutor& ring, CpuView<float> window) {
    for (int64_t i = 0; i < window.size(); ++i) {
      window[i] = integer_at(rank, i);
    }
    ring.run({0, 40 * kS}, 0);
    ring.drain();
    expect_integer_sums(2, {0, 40 * kS}, window);
  });
}

TEST(LyingRing, SurvivesADelay) {
  run_with_fault(Links::kShm, Fault::kDelay);
  run_with_fault(Links::kSocket, Fault::kDelay);
}

TEST(LyingRing, FindsALostMessage) {
  EXPECT_THROW(run_with_fault(Links::kShm, Fault::kDrop), TimeoutError);
  EXPECT_THROW(run_with_fault(Links::kSocket, Fault::kDrop), PeerLostError);
}

TEST(LyingRing, FindsARepeatedMessageOnASocket) {
  EXPECT_THROW(run_with_fault(Links::kSocket, Fault::kRepeat), PeerLostError);
}

TEST(LyingRing, FindsADeadNeighbour) {
  EXPECT_THROW(run_with_fault(Links::kShm, Fault::kDie), TimeoutError);
  EXPECT_THROW(run_with_fault(Links::kSocket, Fault::kDie), PeerLostError);
}

/// Two ranks whose first link passes through a relay that lies at byte `at`; true when every sum is
/// right, and otherwise throws what the ring threw.
void run_over_relay(FaultyRelay::Lie lie, size_t at) {
  constexpr int64_t elements = 4 * kS + 11;
  FaultyRelay relay(lie, at);
  FaultyRelay honest(FaultyRelay::Lie::kNone, 0);
  run_ranks(2, [&](Bootstrap& bootstrap) {
    const int rank = bootstrap.rank();
    CpuBuffer<float> window(elements);
    for (int64_t i = 0; i < elements; ++i) {
      window.view()[i] = integer_at(rank, i);
    }
    FaultyRelay& out = rank == 0 ? relay : honest;
    FaultyRelay& in = rank == 0 ? honest : relay;
    RingOptions options;
    options.rank = rank;
    options.world_size = 2;
    options.timeout = milliseconds(300);
    RingExecutor ring(
        options, make_socket_send_edge(out.take_sender(), window.view(), SocketPath::kNetwork),
        make_socket_recv_edge(in.take_receiver(), window.view(), SocketPath::kNetwork), kNoAbort);
    ring.run({0, elements}, 0);
    ring.drain();
    expect_integer_sums(2, {0, elements}, window.view());
  });
}

TEST(LyingRing, FindsAFlippedBitAnywhere) {
  EXPECT_NO_THROW(run_over_relay(FaultyRelay::Lie::kNone, 0));
  // In every field of the first two frames, and in the data of both steps.
  for (size_t at = 0; at < 128; at += 4) {
    EXPECT_ANY_THROW(run_over_relay(FaultyRelay::Lie::kFlip, at)) << "byte " << at;
  }
  for (const size_t at :
       {size_t{129}, size_t{40000}, size_t{65700}, size_t{131000}, size_t{250000}}) {
    EXPECT_THROW(run_over_relay(FaultyRelay::Lie::kFlip, at), PeerLostError) << "byte " << at;
  }
}

TEST(LyingRing, RefusesAHeaderOfNoWorkThatThereIs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const UniqueFd out(ends[0]);
  CpuBuffer<float> window(1);
  const std::unique_ptr<RecvEdge> edge =
      make_socket_recv_edge(UniqueFd(ends[1]), window.view(), SocketPath::kLoopback);
  Frame frame;
  frame.kind = Frame::kHeader;
  frame.message = 1;
  frame.sequence = 1;
  frame.collective = 256;  // an all-reduce, if the lowest byte were the kind
  frame.frame_check = check_of(frame);
  ASSERT_EQ(::send(out.get(), &frame, sizeof(frame), 0), ssize_t{sizeof(frame)});
  CollectiveHeader header;
  EXPECT_THROW(edge->try_begin(&header), PeerLostError);
}

TEST(LyingRing, FindsMissingBytesAndATruncatedStream) {
  for (const size_t at : {size_t{3}, size_t{60}, size_t{200}, size_t{70000}, size_t{200000}}) {
    EXPECT_ANY_THROW(run_over_relay(FaultyRelay::Lie::kLeaveOut, at)) << "byte " << at;
    EXPECT_THROW(run_over_relay(FaultyRelay::Lie::kTruncate, at), PeerLostError) << "byte " << at;
  }
}

}  // namespace
}  // namespace lockstep
