#include "comm/start_together.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "core/base/as_error.h"
#include "core/base/log.h"

namespace lockstep {

void set_output_rank(const Bootstrap& bootstrap) {
  set_log_rank(bootstrap.rank(), bootstrap.world_size());
  if (bootstrap.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) {
    throw IoError("cannot open /dev/null");
  }
}

void start_together(Bootstrap& bootstrap, std::string_view program,
                    const std::function<void()>& start) {
  std::optional<Error> mine;
  try {
    start();
  } catch (const std::exception& exception) {
    mine = as_error(exception);
  }
  const std::string code = mine ? std::to_string(static_cast<int>(mine->code())) : std::string();
  const std::vector<std::string> codes = bootstrap.all_gather(code);
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank].empty()) {
      continue;
    }
    if (static_cast<int>(rank) == bootstrap.rank()) {
      log_error(program, mine->what());
    }
    // mpirun ends the others as soon as one has left: nobody leaves before the line is out.
    bootstrap.all_gather({});
    throw AbortedError(static_cast<ExitCode>(std::stoi(codes[rank])),
                       fmt::format("rank {} could not start", rank));
  }
}

}  // namespace lockstep
