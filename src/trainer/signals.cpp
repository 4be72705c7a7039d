#include "trainer/signals.h"

#include <atomic>
#include <csignal>

namespace lockstep {
namespace {

std::atomic<int> g_signal{0};  // NOLINT(readability-identifier-naming)

static_assert(std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

extern "C" void on_stop_signal(int signal) {
  if (g_signal.exchange(signal) != 0 && signal != SIGUSR1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction action {};
    action.sa_handler = on_stop_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a write past a file size limit then fails as on a full disk
}

int stop_signal() noexcept {
  return g_signal.load(std::memory_order_relaxed);
}

}  // namespace lockstep
