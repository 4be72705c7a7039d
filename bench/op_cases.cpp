#include "op_cases.h"

#include "op_case_list.h"

namespace lockstep {

std::vector<OpCase> op_cases(const BenchModel& model, CpuStream& stream) {
  OpCaseList<CpuDevice> list(model, stream);
  list.embedding();
  list.layernorm();
  list.attention();
  list.cross_entropy();
  list.column_sums();
  list.parameters();
  return list.take();
}

}  // namespace lockstep
