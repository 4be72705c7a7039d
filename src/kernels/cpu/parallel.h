#pragma once

#include <cstdint>
#ifdef __SANITIZE_THREAD__
#include <thread>
#include <vector>
#endif

namespace lockstep {

/// Runs body(part) once for each part in [0, parts), on up to `threads` threads; the caller is one
/// of them. The body must not throw. What a part computes must not depend on who runs it: results
/// are the same at any number of threads.
template <class Body>
void parallel_for(int threads, int64_t parts, const Body& body) {
  if (threads <= 1 || parts <= 1) {
    for (int64_t part = 0; part < parts; ++part) {
      body(part);
    }
    return;
  }
  [[maybe_unused]] const int team = static_cast<int>(parts < threads ? parts : threads);
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer knows nothing of libgomp's barriers, and all of these threads.
  const auto run = [&](int64_t member) {
    for (int64_t part = member * parts / team; part < (member + 1) * parts / team; ++part) {
      body(part);
    }
  };
  std::vector<std::thread> others;
  for (int member = 1; member < team; ++member) {
    others.emplace_back(run, member);
  }
  run(0);
  for (std::thread& other : others) {
    other.join();
  }
#else
#pragma omp parallel for schedule(static) num_threads(team)
  for (int64_t part = 0; part < parts; ++part) {
    body(part);
  }
#endif
}

/// Cuts [0, total) into blocks of `block` elements, the last one shorter, and runs
/// body(begin, count) for each. The cuts do not depend on the threads.
template <class Body>
void parallel_for_blocks(int threads, int64_t total, int64_t block, const Body& body) {
  parallel_for(threads, (total + block - 1) / block, [&](int64_t part) {
    const int64_t begin = part * block;
    const int64_t left = total - begin;
    body(begin, left < block ? left : block);
  });
}

}  // namespace lockstep
