#include "kernels/layernorm.h"

#include <vector>

#include "kernels/check_size.h"
#include "kernels/cpu/layernorm_isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce_isa.h"

namespace lockstep {
namespace {

// Also the rows whose share of dgamma and dbeta is summed before the blocks' shares are.
constexpr int64_t kRowBlock = 64;

}  // namespace

void layernorm_forward(CpuStream& stream, const LayerNormForward<CpuDevice>& args) {
  static const auto kRows = LOCKSTEP_SELECT_ISA(layernorm_rows);
  const int64_t channels = args.channels;
  check_size("layernorm: y", args.y.size(), args.rows * channels);
  check_size("layernorm: mean", args.mean.size(), args.rows);
  check_size("layernorm: rstd", args.rstd.size(), args.rows);
  check_size("layernorm: x", args.x.size(), args.rows * channels);
  check_size("layernorm: gamma", args.gamma.size(), channels);
  check_size("layernorm: beta", args.beta.size(), channels);
  parallel_for_blocks(stream.threads(), args.rows, kRowBlock, [&](int64_t row, int64_t rows) {
    kRows({.rows = rows,
           .channels = channels,
           .y = args.y.data() + row * channels,
           .mean = args.mean.data() + row,
           .rstd = args.rstd.data() + row,
           .x = args.x.data() + row * channels,
           .gamma = args.gamma.data(),
           .beta = args.beta.data()});
  });
}

void layernorm_backward(CpuStream& stream, const LayerNormBackward<CpuDevice>& args) {
  static const auto kRows = LOCKSTEP_SELECT_ISA(layernorm_backward_rows);
  static const auto kAdd = LOCKSTEP_SELECT_ISA(add_range);
  static const auto kPut = LOCKSTEP_SELECT_ISA(put);
  const int64_t channels = args.channels;
  check_size("layernorm: dx", args.dx.size(), args.rows * channels);
  check_size("layernorm: dgamma", args.dgamma.size(), channels);
  check_size("layernorm: dbeta", args.dbeta.size(), channels);
  check_size("layernorm: dy", args.dy.size(), args.rows * channels);
  check_size("layernorm: x", args.x.size(), args.rows * channels);
  check_size("layernorm: mean", args.mean.size(), args.rows);
  check_size("layernorm: rstd", args.rstd.size(), args.rows);
  check_size("layernorm: gamma", args.gamma.size(), channels);
  const int64_t blocks = args.rows > kRowBlock ? (args.rows + kRowBlock - 1) / kRowBlock : 1;
  // (blocks, 2, channels): each block's dgamma, then its dbeta.
  std::vector<float> sums(static_cast<size_t>(blocks * 2 * channels));
  parallel_for_blocks(stream.threads(), args.rows, kRowBlock, [&](int64_t row, int64_t rows) {
    float* block = sums.data() + row / kRowBlock * 2 * channels;
    kRows({.rows = rows,
           .channels = channels,
           .dx = args.dx.data() + row * channels,
           .dgamma = block,
           .dbeta = block + channels,
           .dy = args.dy.data() + row * channels,
           .x = args.x.data() + row * channels,
           .mean = args.mean.data() + row,
           .rstd = args.rstd.data() + row,
           .gamma = args.gamma.data()});
  });
  for (int64_t block = 1; block < blocks; ++block) {
    kAdd(2 * channels, sums.data(), sums.data(), sums.data() + block * 2 * channels);
  }
  kPut(args.accumulate, channels, args.dgamma.data(), sums.data());
  kPut(args.accumulate, channels, args.dbeta.data(), sums.data() + channels);
}

}  // namespace lockstep
