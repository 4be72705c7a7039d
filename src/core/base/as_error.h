#pragma once

#include <exception>

#include "core/base/error.h"

namespace lockstep {

/// An exception of any type as the error that it is told as: an Error as it stands; bad_alloc, and
/// a thread that cannot be started, as out of memory; what the system refused otherwise as an I/O
/// error; any other as a defect with its own words.
Error as_error(const std::exception& exception);

}  // namespace lockstep
