#include "trainer/step_metrics.h"

#include <fmt/core.h>

#include <cmath>

namespace lockstep {

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const int64_t hours = whole / 3600;
  const std::string rest = fmt::format("{:02}:{:02}", whole / 60 % 60, whole % 60);
  return hours == 0 ? rest : fmt::format("{}:{}", hours, rest);
}

std::string step_line(const StepMetrics& m) {
  const double percent = 100.0 * static_cast<double>(m.step) / static_cast<double>(m.max_steps);
  std::string line =
      fmt::format("step {:5}/{} {:5.1f}% | loss {:7.6f} ", m.step, m.max_steps, percent, m.loss);
  if (m.val_loss) {
    line += fmt::format("| val {:7.6f} ", *m.val_loss);
  }
  line += fmt::format("| norm {:6.4f} | lr {:.2e} | {:.2f} ms | {:.0f} tok/s ", m.norm,
                      m.learning_rate, m.milliseconds, m.tokens_per_second);
  if (m.ranks > 1) {
    line += fmt::format("| comm {:.2f} ms = {:.2f} hidden + {:.2f} exposed ", m.comm_milliseconds,
                        m.hidden_milliseconds(), m.exposed_milliseconds);
  }
  line += m.seconds_left < 0 ? std::string("| --:-- left")
                             : fmt::format("| {} left", clock_text(m.seconds_left));
  return line;
}

std::string step_json(const StepMetrics& m) {
  // fmt's {} prints the shortest digits that read back to the same double.
  std::string json = fmt::format(R"({{"step": {}, "loss": {})", m.step, m.loss);
  if (m.val_loss) {
    json += fmt::format(R"(, "val_loss": {})", *m.val_loss);
  }
  json += fmt::format(
      R"(, "grad_norm": {}, "learning_rate": {}, "step_ms": {:.4f}, "tokens_per_second": {:.1f}, )"
      R"("comm_ms": {:.4f}, "comm_exposed_ms": {:.4f}}})",
      m.norm, m.learning_rate, m.milliseconds, m.tokens_per_second, m.comm_milliseconds,
      m.exposed_milliseconds);
  return json;
}

}  // namespace lockstep
