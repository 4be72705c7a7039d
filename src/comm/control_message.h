#pragma once

#include "comm/rank_status.h"
#include "comm/run_cause.h"

namespace lockstep {

namespace wire {
class Cause;
class Control;
class Status;
}  // namespace wire

// What ranks say on the control connection (proto/wire.proto), as the control plane means it.

wire::Control heartbeat_message(const RankStatus& status);
/// To rank 0, and from it; a text too long for a message is cut.
wire::Control report_message(const RunCause& cause);
wire::Control abort_message(const RunCause& cause);
wire::Control finish_message();
wire::Control finished_message();
wire::Control leave_message();

RankStatus status_of(const wire::Status& message);
RunCause cause_of(const wire::Cause& message);

}  // namespace lockstep
