// One rank of a group under the control plane, driven by tests/fault/rank_faults.py: it goes to a
// given step, phase and bucket, says so in a file, waits there for the file `go`, and then finishes
// or fails as told; or it sums with the others without end. One rank may be told to finish only
// when it finds the file `late`. A rank that leaves with an error by
// itself, not ended by its control thread, writes the file `left.R`.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "comm/control_plane.h"
#include "comm/mpi_bootstrap.h"
#include "comm/run_under.h"
#include "core/base/command_line.h"
#include "core/base/file.h"
#include "core/base/run_main.h"

namespace lockstep {
namespace {

struct Orders {
  std::string directory;
  int64_t step = 0;
  std::string phase = "forward";
  int64_t bucket = -1;
  std::string fail = "no";
  int64_t fail_rank = -1;
  bool deaf = false;
  std::string sum = "no";
  int64_t heartbeat_ms = 500;
  int64_t peer_timeout_ms = 10000;
  int64_t collective_timeout_ms = 120000;
  int64_t late_rank = -1;
};

bool read_orders(int argc, char** argv, Orders* orders) {
  CommandLine cli("rank_program", "One rank that fails as told.");
  cli.option("--dir", &orders->directory, "Where the ranks and the test meet").required();
  cli.option("--step", &orders->step, "Step to go to");
  cli.option("--phase", &orders->phase, "Phase to go to");
  cli.option("--bucket", &orders->bucket, "Bucket to go to");
  cli.option("--fail", &orders->fail, "How to fail after `go`")
      .one_of({"no", "abort", "bad_alloc", "exit", "io_error", "leave", "unknown_error"});
  cli.option("--fail-rank", &orders->fail_rank, "Who fails");
  cli.option("--sum", &orders->sum, "In place of waiting, sum without end over this transport")
      .one_of({"no", "shm", "socket"});
  cli.flag("--deaf", &orders->deaf, "The main thread never looks at the control plane");
  cli.option("--heartbeat-ms", &orders->heartbeat_ms, "Heartbeat interval");
  cli.option("--peer-timeout-ms", &orders->peer_timeout_ms, "Silence that counts as stopped");
  cli.option("--collective-timeout-ms", &orders->collective_timeout_ms,
             "Limit of a sum's waits, and of the wait for the last rank to finish");
  cli.option("--late-rank", &orders->late_rank, "Who finishes when it finds the file `late`");
  return cli.parse(argc, argv);
}

Phase phase_of(const std::string& name) {
  for (int value = 0; value <= static_cast<int>(Phase::kShutdown); ++value) {
    if (phase_name(static_cast<Phase>(value)) == name) {
      return static_cast<Phase>(value);
    }
  }
  throw UsageError("no phase is named {}", name);
}

void wait_for_file(const std::filesystem::path& path, const ControlPlane& control, bool deaf) {
  while (!std::filesystem::exists(path)) {
    if (!deaf) {
      control.throw_if_aborted();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void fail(const Orders& orders) {
  if (orders.fail == "abort") {
    std::abort();
  }
  if (orders.fail == "bad_alloc") {
    throw std::bad_alloc();
  }
  if (orders.fail == "exit") {
    std::exit(0);  // NOLINT(concurrency-mt-unsafe): the point of the test
  }
  if (orders.fail == "io_error") {
    throw IoError("cannot write /somewhere: no space left on device");
  }
  if (orders.fail == "unknown_error") {
    throw std::runtime_error("not one of ours");
  }
}

[[noreturn]] void sum_without_end(const Orders& orders, MpiBootstrap& bootstrap,
                                  const PeerTable& peers, ControlPlane& control) {
  constexpr int64_t kElements = 1 << 22;
  CommunicatorOptions options;
  options.transport = orders.sum == "shm" ? TransportChoice::kShm : TransportChoice::kSocket;
  options.window_elements = kElements;
  options.collective_timeout = std::chrono::milliseconds(orders.collective_timeout_ms);
  Communicator<CpuDevice> communicator(bootstrap, peers, control, options);
  CpuStream stream;
  const auto sum = [&] {
    communicator.all_reduce(stream, {0, kElements}, static_cast<int>(orders.bucket));
    communicator.finish(stream);
  };
  sum();
  replace_file(std::filesystem::path(orders.directory) / fmt::format("ready.{}", bootstrap.rank()),
               "");
  while (true) {
    sum();
  }
}

void run_rank(const Orders& orders, MpiBootstrap& bootstrap) {
  const PeerTable peers = gather_peer_table(bootstrap);
  ControlPlane control(bootstrap, peers,
                       {.heartbeat_interval = std::chrono::milliseconds(orders.heartbeat_ms),
                        .peer_timeout = std::chrono::milliseconds(orders.peer_timeout_ms),
                        .finish_timeout = std::chrono::milliseconds(orders.collective_timeout_ms)});
  const std::filesystem::path directory = orders.directory;
  const bool fails = orders.fail != "no" && bootstrap.rank() == orders.fail_rank;
  if (fails && orders.fail == "leave") {
    return;
  }
  run_under(control, [&] {
    control.set_step(orders.step);
    control.set_phase(phase_of(orders.phase));
    if (orders.sum != "no") {
      sum_without_end(orders, bootstrap, peers, control);
    }
    control.set_bucket(static_cast<int>(orders.bucket));
    replace_file(directory / fmt::format("ready.{}", bootstrap.rank()), "");
    wait_for_file(directory / "go", control, orders.deaf);
    if (fails) {
      fail(orders);
    }
    if (bootstrap.rank() == orders.late_rank) {
      wait_for_file(directory / "late", control, orders.deaf);
    }
    if (orders.fail != "no") {
      wait_for_file(directory / "never", control, orders.deaf);
    }
  });
}

int body(int argc, char** argv) {
  Orders orders;
  if (!read_orders(argc, argv, &orders)) {
    return 0;
  }
  MpiBootstrap bootstrap(&argc, &argv);
  bootstrap.run([&] {
    try {
      run_rank(orders, bootstrap);
    } catch (...) {
      replace_file(
          std::filesystem::path(orders.directory) / fmt::format("left.{}", bootstrap.rank()), "");
      throw;
    }
  });
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("rank_program", lockstep::body, argc, argv);
}
