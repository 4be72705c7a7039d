#include "comm/control_message.h"

#include "wire.pb.h"

namespace lockstep {
namespace {

void pack(const RunCause& cause, wire::Cause* message) {
  constexpr size_t max_bytes = 4096;
  message->set_code(static_cast<int>(cause.code));
  message->set_lost_rank(cause.lost_rank);
  message->set_message(cause.message.substr(0, max_bytes));
}

}  // namespace

wire::Control heartbeat_message(const RankStatus& status) {
  wire::Control message;
  message.mutable_heartbeat()->set_step(status.step);
  message.mutable_heartbeat()->set_phase(static_cast<uint32_t>(status.phase));
  message.mutable_heartbeat()->set_bucket(status.bucket);
  return message;
}

wire::Control report_message(const RunCause& cause) {
  wire::Control message;
  pack(cause, message.mutable_report());
  return message;
}

wire::Control abort_message(const RunCause& cause) {
  wire::Control message;
  pack(cause, message.mutable_abort());
  return message;
}

wire::Control finish_message() {
  wire::Control message;
  message.set_finish(true);
  return message;
}

wire::Control finished_message() {
  wire::Control message;
  message.set_finished(true);
  return message;
}

wire::Control leave_message() {
  wire::Control message;
  message.set_leave(true);
  return message;
}

RankStatus status_of(const wire::Status& message) {
  return {message.step(), static_cast<Phase>(message.phase()), message.bucket()};
}

RunCause cause_of(const wire::Cause& message) {
  return {static_cast<ExitCode>(message.code()), message.lost_rank(), message.message()};
}

}  // namespace lockstep
