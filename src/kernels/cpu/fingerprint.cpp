#include "kernels/fingerprint.h"

#include <bit>
#include <vector>

#include "kernels/check_size.h"
#include "kernels/cpu/parallel.h"

namespace lockstep {

void fingerprint(CpuStream& stream, const Fingerprint<CpuDevice>& args) {
  constexpr int64_t kBlock = 32768;
  check_size("fingerprint: pieces", args.pieces.size(), kFingerprintPieces);
  const int64_t size = args.x.size();
  std::vector<uint64_t> sums(static_cast<size_t>((size + kBlock - 1) / kBlock));
  parallel_for_blocks(stream.threads(), size, kBlock, [&](int64_t begin, int64_t count) {
    uint64_t sum = 0;
    for (int64_t i = begin; i < begin + count; ++i) {
      sum += fingerprint_term(std::bit_cast<uint32_t>(args.x[i]), i);
    }
    sums[static_cast<size_t>(begin / kBlock)] = sum;
  });
  uint64_t total = 0;
  for (const uint64_t sum : sums) {
    total += sum;
  }
  for (int64_t piece = 0; piece < kFingerprintPieces; ++piece) {
    args.pieces[piece] = fingerprint_piece(total, piece);
  }
}

}  // namespace lockstep
