#include "trainer/cuda_device_facts.h"

#include <algorithm>
#include <optional>

#include "comm/cuda/rank_gpu.h"
#include "comm/gpu_transport_select.h"
#include "core/base/numa_node.h"
#include "trainer/evaluation.h"
#include "trainer/kernel_scratch.h"
#include "trainer/step_time.h"

namespace lockstep {
namespace {

StepWork work_of(const RunShape& shape, Precision precision) {
  return {.model = shape.model,
          .batch = shape.batch.batch_size,
          .micro_steps = shape.batch.accumulation_steps,
          .precision = precision,
          .update_ranks = shape.sharded ? shape.batch.world_size : 1};
}

/// Evaluation may take more sequences at a time.
int64_t most_scratch(const RunShape& shape, Precision precision, const CudaFacts& facts) {
  const EvaluationPlan evaluation =
      plan_evaluation(shape.eval_iters, shape.batch.global_batch_size(), shape.model);
  StepWork work = work_of(shape, precision);
  work.batch = std::max(work.batch, evaluation.batch_size);
  return kernel_scratch(work, facts);
}

}  // namespace

DevicePlace place_of(const CudaStream& stream) {
  const CudaFacts& facts = stream.facts();
  const std::optional<int> node = numa_node_of(facts.pci_id);
  return {facts.name, facts.pci_id, node ? std::to_string(*node) : "-"};
}

std::map<std::string, std::string> arithmetic(const CudaStream& stream) {
  return {{"GPU", stream.facts().name}};
}

MemorySupply memory_supply(const CudaStream& stream, const Group& group,
                           const TrainConfig& config) {
  return {.device = "on the " + stream.facts().name,
          .free = CudaDevice::free_bytes(),
          .sums = [peers = group.peers, options = config.communicator(0)](
                      int64_t gradients) { return peer_sum_bytes(peers, options, gradients); },
          .kernels = [facts = stream.facts(), precision = stream.precision()](
                         const RunShape& shape) { return most_scratch(shape, precision, facts); }};
}

std::string predicted_step(const CudaStream& stream, const RunShape& shape) {
  return step_time_report(work_of(shape, stream.precision()), stream.facts());
}

CudaStream make_cuda_stream(const Group& group, const TrainConfig& config) {
  use_rank_gpu(group.bootstrap, group.peers, config.share_gpu);
  return CudaStream(config.precision == "tf32" ? Precision::kTf32 : Precision::kFp32);
}

}  // namespace lockstep
