#include <new>

#include "comm/control_plane.h"

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
  } catch (const std::bad_alloc&) {
    control.report(OutOfMemoryError("out of memory"));
    control.throw_if_aborted();
    throw;
  } catch (const std::exception& error) {
    control.report(InternalError("{}", error.what()));
    control.throw_if_aborted();
    throw;
  }
}

}  // namespace lockstep
