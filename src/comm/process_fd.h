#pragma once

#include <cstdint>

#include "core/base/file.h"

namespace lockstep {

/// What descriptor `fd` of process `pid` of this host refers to, opened anew with these flags and
/// close-on-exec; empty when this process cannot. It may be anything, since numbers are used again:
/// the caller has to prove it, and the opening waits for nothing.
///
/// Through /proc: the kernel itself checks that both processes belong to one user, and no listener
/// is open that a stranger could reach.
UniqueFd open_fd_of(int64_t pid, int fd, int flags);

}  // namespace lockstep
