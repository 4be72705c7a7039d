#include "op_cases.h"

#include "op_activation_cases.h"
#include "op_parameter_cases.h"

namespace lockstep {

std::vector<OpCase> op_cases(const BenchModel& model, CpuStream& stream) {
  OpCaseMaker<CpuDevice> cases(stream);
  add_embedding(cases, model);
  add_layernorm(cases, model);
  add_attention(cases, model);
  add_cross_entropy(cases, model);
  add_column_sums(cases, model);
  add_parameters(cases, model);
  return cases.take();
}

}  // namespace lockstep
