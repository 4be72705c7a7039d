#pragma once

namespace lockstep {

/// In how many rounds every pair of `ranks` meets once.
constexpr int pair_rounds(int ranks) {
  return ranks + ranks % 2 - 1;
}

/// Whom `rank` meets in `round`, so that each meets one at a time: the circle method of round-robin
/// tournaments. -1: nobody, once each when the number of ranks is odd.
constexpr int pair_partner(int rank, int round, int ranks) {
  const int circle = pair_rounds(ranks);  // all but one stand on it, and i meets round - i
  int partner = circle;
  if (rank == circle) {
    partner = round * (circle + 1) / 2 % circle;
  } else if (const int across = (round - rank + circle) % circle; across != rank) {
    partner = across;
  }
  return partner < ranks ? partner : -1;
}

}  // namespace lockstep
