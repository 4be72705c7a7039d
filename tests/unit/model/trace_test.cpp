#include "core/device/trace.h"

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/device/cpu_device.h"
#include "unit/model/tiny_gpt.h"

namespace {

std::vector<std::string> open_ranges;
std::vector<std::string> seen_ranges;  // with what they lay in, as "outer/inner"

int push(const char* name) {
  open_ranges.emplace_back(name);
  std::string path;
  for (const std::string& range : open_ranges) {
    path += (path.empty() ? "" : "/") + range;
  }
  seen_ranges.push_back(path);
  return static_cast<int>(open_ranges.size()) - 1;
}

int pop() {
  open_ranges.pop_back();
  return static_cast<int>(open_ranges.size());
}

int listen(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) == 0) {
    return 0;
  }
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}

// This program is its own tool: NVTX looks here for one before it takes its first range.
[[maybe_unused]] const bool kListens = [] {
  InitializeInjectionNvtx2_fnptr = &listen;
  return true;
}();

}  // namespace

namespace lockstep {
namespace {

int64_t count(const std::string& path) {
  return std::count(seen_ranges.begin(), seen_ranges.end(), path);
}

TEST(Trace, NamesEveryLayerAndItsOps) {
  TinyGpt<CpuDevice> gpt(
      {.vocab_size = 19, .block_size = 8, .n_layer = 2, .n_head = 2, .n_embd = 16}, 1, 8);
  CpuStream stream;
  seen_ranges.clear();
  gpt.forward(stream);
  gpt.model.backward(stream, false, {});
  EXPECT_TRUE(open_ranges.empty());
  for (const std::string layer : {"0", "1"}) {
    const std::string forward = "forward/layer forward " + layer;
    EXPECT_EQ(count(forward), 1);
    EXPECT_EQ(count(forward + "/linear forward"), 4);
    EXPECT_EQ(count(forward + "/layernorm forward"), 2);
    EXPECT_EQ(count(forward + "/attention forward"), 1);
    const std::string backward = "backward/layer backward " + layer;
    EXPECT_EQ(count(backward + "/linear backward"), 4);
    EXPECT_EQ(count(backward + "/layernorm backward"), 2);
    EXPECT_EQ(count(backward + "/attention backward"), 1);
  }
  EXPECT_EQ(count("loss"), 1);
  EXPECT_EQ(count("backward/head backward"), 1);
}

}  // namespace
}  // namespace lockstep
