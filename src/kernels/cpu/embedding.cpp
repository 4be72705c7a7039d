#include "kernels/embedding.h"

#include <vector>

namespace lockstep {

void embedding_forward(CpuStream& /*stream*/, const EmbeddingForward<CpuDevice>& args) {
  const int64_t channels = args.channels;
  for (int64_t i = 0; i < args.batch * args.time; ++i) {
    const float* token = args.wte.data() + args.tokens[i] * channels;
    const float* position = args.wpe.data() + i % args.time * channels;
    for (int64_t c = 0; c < channels; ++c) {
      args.x[i * channels + c] = token[c] + position[c];
    }
  }
}

void embedding_backward(CpuStream& /*stream*/, const EmbeddingBackward<CpuDevice>& args) {
  const int64_t channels = args.channels;
  std::vector<float> dwte(args.head.begin(), args.head.end());
  std::vector<float> dwpe(static_cast<size_t>(args.dwpe.size()));
  for (int64_t i = 0; i < args.batch * args.time; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const float dx = args.dx[i * channels + c];
      dwte[static_cast<size_t>(args.tokens[i] * channels + c)] += dx;
      dwpe[static_cast<size_t>(i % args.time * channels + c)] += dx;
    }
  }
  for (int64_t i = 0; i < args.dwte.size(); ++i) {
    const float finished = dwte[static_cast<size_t>(i)];
    args.dwte[i] = args.accumulate ? args.dwte[i] + finished : finished;
  }
  for (int64_t i = 0; i < args.dwpe.size(); ++i) {
    const float finished = dwpe[static_cast<size_t>(i)];
    args.dwpe[i] = args.accumulate ? args.dwpe[i] + finished : finished;
  }
}

}  // namespace lockstep
