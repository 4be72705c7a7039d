#include "kernels/embedding.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/check_size.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce_isa.h"

namespace lockstep {
namespace {

constexpr int64_t kPositionBlock = 64;
constexpr int64_t kTokenBlock = 16;
constexpr int64_t kChannelBlock = 64;

// The positions of each token in ascending order: those of token v are
// positions[begin[v] … begin[v + 1]).
struct PositionsOfTokens {
  std::vector<int64_t> begin;
  std::vector<int64_t> positions;
};

PositionsOfTokens sort_positions(CpuView<const int32_t> tokens, int64_t count, int64_t vocabulary) {
  PositionsOfTokens sorted{std::vector<int64_t>(static_cast<size_t>(vocabulary) + 1),
                           std::vector<int64_t>(static_cast<size_t>(count))};
  for (int64_t i = 0; i < count; ++i) {
    ++sorted.begin[static_cast<size_t>(tokens[i]) + 1];
  }
  for (size_t v = 0; v < static_cast<size_t>(vocabulary); ++v) {
    sorted.begin[v + 1] += sorted.begin[v];
  }
  std::vector<int64_t> next(sorted.begin.begin(), sorted.begin.end() - 1);
  for (int64_t i = 0; i < count; ++i) {
    sorted.positions[static_cast<size_t>(next[static_cast<size_t>(tokens[i])]++)] = i;
  }
  return sorted;
}

void token_gradient(CpuStream& stream, const EmbeddingBackward<CpuDevice>& args) {
  static const auto kAdd = LOCKSTEP_SELECT_ISA(add_range);
  static const auto kPut = LOCKSTEP_SELECT_ISA(put);
  const int64_t channels = args.channels;
  const PositionsOfTokens sorted =
      sort_positions(args.tokens, args.batch * args.time, args.vocabulary);
  // A small vocabulary has few tokens, a large one few positions for each: parts are blocks of both
  // tokens and channels.
  const int64_t columns = (channels + kChannelBlock - 1) / kChannelBlock;
  const int64_t blocks = (args.vocabulary + kTokenBlock - 1) / kTokenBlock;
  parallel_for(stream.threads(), blocks * columns, [&](int64_t part) {
    const int64_t first = part / columns * kTokenBlock;
    const int64_t last = std::min(first + kTokenBlock, args.vocabulary);
    const int64_t c = part % columns * kChannelBlock;
    const int64_t width = std::min(kChannelBlock, channels - c);
    std::array<float, kChannelBlock> sum;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (int64_t v = first; v < last; ++v) {
      kPut(false, width, sum.data(), args.head.data() + v * channels + c);
      const auto row = static_cast<size_t>(v);
      for (int64_t i = sorted.begin[row]; i < sorted.begin[row + 1]; ++i) {
        const int64_t position = sorted.positions[static_cast<size_t>(i)];
        kAdd(width, sum.data(), sum.data(), args.dx.data() + position * channels + c);
      }
      kPut(args.accumulate, width, args.dwte.data() + v * channels + c, sum.data());
    }
  });
}

void position_gradient(CpuStream& stream, const EmbeddingBackward<CpuDevice>& args) {
  static const auto kAdd = LOCKSTEP_SELECT_ISA(add_range);
  static const auto kPut = LOCKSTEP_SELECT_ISA(put);
  constexpr int64_t kBlock = 1024;
  const int64_t sequence = args.time * args.channels;
  parallel_for_blocks(stream.threads(), sequence, kBlock, [&](int64_t begin, int64_t count) {
    std::array<float, kBlock> sum{};
    for (int64_t b = 0; b < args.batch; ++b) {
      kAdd(count, sum.data(), sum.data(), args.dx.data() + b * sequence + begin);
    }
    kPut(args.accumulate, count, args.dwpe.data() + begin, sum.data());
  });
  if (!args.accumulate) {
    std::fill(args.dwpe.begin() + sequence, args.dwpe.end(), 0.0F);
  }
}

}  // namespace

void embedding_forward(CpuStream& stream, const EmbeddingForward<CpuDevice>& args) {
  static const auto kAdd = LOCKSTEP_SELECT_ISA(add_range);
  const int64_t channels = args.channels;
  const int64_t count = args.batch * args.time;
  check_size("embedding: x", args.x.size(), count * channels);
  check_size("embedding: tokens", args.tokens.size(), count);
  check_size("embedding: wpe", args.wpe.size(), args.time * channels);
  parallel_for_blocks(stream.threads(), count, kPositionBlock, [&](int64_t begin, int64_t block) {
    for (int64_t i = begin; i < begin + block; ++i) {
      kAdd(channels, args.x.data() + i * channels, args.wte.data() + args.tokens[i] * channels,
           args.wpe.data() + i % args.time * channels);
    }
  });
}

void embedding_backward(CpuStream& stream, const EmbeddingBackward<CpuDevice>& args) {
  const int64_t channels = args.channels;
  const int64_t count = args.batch * args.time;
  check_size("embedding: dwte", args.dwte.size(), args.vocabulary * channels);
  check_size("embedding: dwpe", args.dwpe.size(), args.time * channels);
  check_size("embedding: head", args.head.size(), args.vocabulary * channels);
  check_size("embedding: dx", args.dx.size(), count * channels);
  check_size("embedding: tokens", args.tokens.size(), count);
  token_gradient(stream, args);
  position_gradient(stream, args);
}

}  // namespace lockstep
