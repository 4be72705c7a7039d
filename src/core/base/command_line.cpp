#include "core/base/command_line.h"

namespace lockstep {}  // namespace lockstep
