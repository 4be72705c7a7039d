#include "comm/run_under.h"

#include "core/base/as_error.h"

namespace lockstep {

void run_under(ControlPlane& control, const std::function<void()>& body) {
  try {
    body();
    control.finish();
    return;
  } catch (const Error& error) {
    control.report(error);
    control.throw_if_aborted();
    throw;
  } catch (const std::exception& exception) {
    control.report(as_error(exception));
    control.throw_if_aborted();
    throw;
  }
}

}  // namespace lockstep
