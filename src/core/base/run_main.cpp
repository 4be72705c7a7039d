#include "core/base/run_main.h"

#include <cstdio>
#include <utility>

#include "core/base/as_error.h"
#include "core/base/error.h"
#include "core/base/log.h"

namespace lockstep {

int run_main(std::string_view program, int (*body)(int, char**), int argc, char** argv) {
  const auto fail = [program](std::string message, ExitCode code) {
    log_error(program, std::move(message));
    return static_cast<int>(code);
  };
  try {
    const int status = body(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return fail("cannot write standard output", ExitCode::kIo);
    }
    return status;
  } catch (const AbortedError& error) {
    return static_cast<int>(error.code());
  } catch (const std::exception& exception) {
    const Error error = as_error(exception);
    return fail(error.what(), error.code());
  }
}

}  // namespace lockstep
