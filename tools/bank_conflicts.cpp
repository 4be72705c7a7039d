// Prints how many passes each access of the tensor-core and multi-stage kernels to shared memory
// needs.
#include <fmt/core.h>

#include "core/base/command_line.h"
#include "core/base/run_main.h"
#include "kernels/layout/access_table.h"

namespace lockstep {
namespace {

int run(int argc, char** argv) {
  CommandLine cli("bank_conflicts",
                  "Prints the shared-memory passes of every staging store and fragment load.");
  cli.footer(
      "Computed from the index functions of the kernels; needs no GPU. A pass serves the 32 banks "
      "once: 1 is free of conflicts.");
  if (!cli.parse(argc, argv)) {
    return 0;
  }
  using layout::Major;
  using layout::Role;
  fmt::print("{:>4} {:>4} {:<8} {:<10} {:>6}\n", "rung", "tile", "major", "access", "passes");
  for (const layout::Access& access : layout::access_table()) {
    fmt::print("{:>4} {:>4} {:<8} {:<10} {:>6}\n", access.rung, access.tile == Role::kA ? "A" : "B",
               access.major == Major::kK ? "K" : "M or N", access.what, access.passes);
  }
  fmt::print("# rung 10, keyed by the other axis: K-major {}, M- or N-major {}\n",
             layout::fragment_store_passes(Role::kA, Major::kK, Major::kMN),
             layout::fragment_store_passes(Role::kA, Major::kMN, Major::kK));
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("bank_conflicts", lockstep::run, argc, argv);
}
