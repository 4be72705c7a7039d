#include "kernels/cuda/gemm/kernel.h"

#include "core/base/error.h"
#include "kernels/layout/tile_shape.h"

namespace lockstep {
namespace {

template <class Tile>
GemmKernelFacts facts_of(std::string_view name) {
  return {
      .name = name, .tile_m = Tile::kBlockM, .tile_n = Tile::kBlockN, .resident = Tile::kResident};
}

template <class Tile>
GemmKernelFacts facts_of_wgmma(std::string_view name, ReadsA a) {
  GemmKernelFacts facts = facts_of<Tile>(name);
  facts.wgmma = true;
  facts.a = a;
  return facts;
}

template <class Tile>
GemmKernelFacts facts_of_staying(std::string_view name) {
  GemmKernelFacts facts = facts_of_wgmma<Tile>(name, ReadsA::kKMajor);
  facts.resident = kAnyNumber;
  return facts;
}

}  // namespace

GemmKernelFacts kernel_facts(GemmKernel kernel) {
  switch (kernel) {
    case GemmKernel::kSimt128x128:
      return facts_of<layout::SimtTile128x128>("simt 128x128");
    case GemmKernel::kSimt128x64:
      return facts_of<layout::SimtTile128x64>("simt 128x64");
    case GemmKernel::kSimt64x64:
      return facts_of<layout::SimtTile64x64>("simt 64x64");
    case GemmKernel::kMma128x128:
      return facts_of<layout::MmaTile128x128>("mma 128x128");
    case GemmKernel::kMma128x64:
      return facts_of<layout::MmaTile128x64>("mma 128x64");
    case GemmKernel::kMma64x64:
      return facts_of<layout::MmaTile64x64>("mma 64x64");
    case GemmKernel::kWgmma128x256:
      return facts_of_wgmma<layout::WgmmaTile128x256>("wgmma 128x256", ReadsA::kKMajor);
    case GemmKernel::kWgmma128x192:
      return facts_of_wgmma<layout::WgmmaTile128x192>("wgmma 128x192", ReadsA::kKMajor);
    case GemmKernel::kWgmma128x128:
      return facts_of_wgmma<layout::WgmmaTile128x128>("wgmma 128x128", ReadsA::kKMajor);
    case GemmKernel::kWgmma128x96:
      return facts_of_wgmma<layout::WgmmaTile128x96>("wgmma 128x96", ReadsA::kKMajor);
    case GemmKernel::kWgmma128x64:
      return facts_of_wgmma<layout::WgmmaTile128x64>("wgmma 128x64", ReadsA::kKMajor);
    case GemmKernel::kPingPong64x256:
      return facts_of_staying<layout::PingPongTile64x256>("pingpong 64x256");
    case GemmKernel::kPingPong64x192:
      return facts_of_staying<layout::PingPongTile64x192>("pingpong 64x192");
    case GemmKernel::kWgmmaMn128x256:
      return facts_of_wgmma<layout::WgmmaTile128x256>("wgmma 128x256, a MN-major",
                                                      ReadsA::kMnMajor);
    case GemmKernel::kWgmmaMn128x192:
      return facts_of_wgmma<layout::WgmmaTile128x192>("wgmma 128x192, a MN-major",
                                                      ReadsA::kMnMajor);
    case GemmKernel::kWgmmaMn128x128:
      return facts_of_wgmma<layout::WgmmaTile128x128>("wgmma 128x128, a MN-major",
                                                      ReadsA::kMnMajor);
    case GemmKernel::kSplit128x128:
      return facts_of_wgmma<layout::SplitTile128x128>("split 128x128", ReadsA::kAny);
    case GemmKernel::kSplit128x96:
      return facts_of_wgmma<layout::SplitTile128x96>("split 128x96", ReadsA::kAny);
  }
  throw InternalError("a kernel of {}", static_cast<int>(kernel));
}

}  // namespace lockstep
