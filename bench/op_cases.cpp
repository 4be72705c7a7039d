#include "op_cases.h"

#include "core/base/error.h"
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

std::vector<OpCase> choose_ops(std::vector<OpCase> cases, std::string_view part) {
  std::string names;
  for (const OpCase& op : cases) {
    names += (names.empty() ? "" : ", ") + op.name;
  }
  std::erase_if(cases, [part](const OpCase& op) { return op.name.find(part) == op.name.npos; });
  if (cases.empty()) {
    throw UsageError("--op {}: the ops are {}", part, names);
  }
  return cases;
}

}  // namespace lockstep
