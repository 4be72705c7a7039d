#pragma once

namespace lockstep {

/// Between two looks of a thread that waits without giving its core away: the core slows down and
/// leaves more to its other thread.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace lockstep
