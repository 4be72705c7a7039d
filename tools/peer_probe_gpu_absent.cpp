// What peer_probe has in a build without CUDA, where no GPU is usable.
#include "core/base/exit_code.h"
#include "peer_probe_gpu.h"

namespace lockstep {

int probe_gpus(const Group& /*group*/, const PeerProbeOptions& /*options*/) {
  return static_cast<int>(ExitCode::kUnsupported);
}

}  // namespace lockstep
