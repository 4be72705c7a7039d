#include "core/data/sample_order.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/base/random.h"

namespace lockstep {
namespace {

// Streams of random numbers that nothing else draws from.
constexpr uint64_t kEpochStream = uint64_t{0x64617461} << 32U;  // "data"
constexpr uint64_t kPhaseStream = kEpochStream + 1;
constexpr uint64_t kRoundStream = kEpochStream + 2;
constexpr int kRounds = 12;  // with six, orders of five windows are measurably not uniform

// The place of `index` in a random order of [0, size): a Feistel network (Luby and Rackoff 1988:
// four rounds of a random function already make a random permutation) on the smallest even number
// of bits that holds size. A result outside [0, size) is put in again until it is inside (Black and
// Rogaway 2002), which keeps it a permutation; the domain is at most four times too large.
uint64_t permute(uint64_t key, uint64_t index, uint64_t size) {
  const auto half = static_cast<int>((std::bit_width(size - 1) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half;
    uint64_t right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (random_bits(key, kRoundStream + round, right) & mask);
      left = right;
      right = mixed;
    }
    index = (left << half) | right;
  } while (index >= size);
  return index;
}

}  // namespace

SampleOrder::SampleOrder(uint64_t seed, int64_t tokens, int64_t block_size)
    : seed_(seed),
      tokens_(tokens),
      block_size_(block_size),
      // One window less than fits, where there are two, so that the phase has at least a whole
      // block to choose from.
      windows_(std::max<int64_t>(1, (tokens - 1) / std::max<int64_t>(1, block_size) - 1)) {
  LOCKSTEP_CHECK(block_size > 0 && tokens > block_size, "{} tokens, block size {}", tokens,
                 block_size);
}

int64_t SampleOrder::offset(int64_t index) const {
  LOCKSTEP_CHECK(index >= 0, "sample {}", index);
  const auto epoch = static_cast<uint64_t>(index / windows_);
  const auto place = static_cast<uint64_t>(index % windows_);
  const uint64_t key = random_bits(seed_, kEpochStream, epoch);
  const auto phases = static_cast<uint64_t>(tokens_ - windows_ * block_size_);
  const uint64_t phase = random_bits(key, kPhaseStream, 0) % phases;
  const uint64_t window = permute(key, place, static_cast<uint64_t>(windows_));
  return static_cast<int64_t>(phase + window * static_cast<uint64_t>(block_size_));
}

int64_t evaluation_offset(int64_t index, int64_t count, int64_t tokens, int64_t block_size) {
  LOCKSTEP_CHECK(index >= 0 && index < count && block_size > 0 && tokens > block_size,
                 "window {} of {}, {} tokens, block size {}", index, count, tokens, block_size);
  // floor(index * offsets / count) without the product's overflow.
  const int64_t offsets = tokens - block_size;
  return index * (offsets / count) + index * (offsets % count) / count;
}

}  // namespace lockstep
