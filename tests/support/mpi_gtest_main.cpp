// Runs a GoogleTest program under mpirun: rank 0 prints, other ranks report failures only, and a
// failure on any rank is a failure of all.
#include <gtest/gtest.h>

#include <string>

#include "comm/mpi_bootstrap.h"
#include "support/mpi_environment.h"

namespace {

lockstep::MpiBootstrap* g_bootstrap = nullptr;

class FailurePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) {
      std::fprintf(stderr, "[rank %d] %s:%d: %s\n", g_bootstrap->rank(), result.file_name(),
                   result.line_number(), result.message());
    }
  }
};

}  // namespace

lockstep::Bootstrap& test_bootstrap() {
  return *g_bootstrap;
}

int main(int argc, char** argv) {
  lockstep::MpiBootstrap bootstrap(&argc, &argv);
  g_bootstrap = &bootstrap;
  testing::InitGoogleTest(&argc, argv);
  if (bootstrap.rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  const std::string mine = RUN_ALL_TESTS() == 0 ? "pass" : "fail";
  for (const std::string& theirs : bootstrap.all_gather(mine)) {
    if (theirs != "pass") {
      return 1;
    }
  }
  return 0;
}
