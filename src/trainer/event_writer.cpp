#include "trainer/event_writer.h"

#include <event.pb.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

#include "core/base/error.h"
#include "core/base/host_name.h"
#include "core/base/log.h"

namespace lockstep {
namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path new_event_file(const std::filesystem::path& folder) {
  static std::atomic<int> number{0};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw IoError("cannot create the folder {}: {}", folder.string(), error.message());
  }
  // TensorBoard reads a folder's files in the order of their names; ten digits last until 2286.
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                              static_cast<int64_t>(wall_seconds()), host_name(), ::getpid(),
                              number++);
}

void append(RecordWriter* writer, event::Event* event, int64_t step) {
  event->set_wall_time(wall_seconds());
  event->set_step(step);
  const std::string record = event->SerializeAsString();
  writer->append(bytes_of(record));
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& folder, int64_t step)
    : writer_(new_event_file(folder)) {
  event::Event version;
  version.set_file_version("brain.Event:2");
  append(&writer_, &version, 0);
  event::Event start;
  start.mutable_session_log()->set_status(event::SessionLog::START);
  append(&writer_, &start, step);
  writer_.flush();
  whole_bytes_ = writer_.size();
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value) {
  event::Event event;
  event::Summary::Value* point = event.mutable_summary()->add_value();
  point->set_tag(tag.data(), tag.size());
  point->set_simple_value(static_cast<float>(value));
  try {
    if (failed_) {
      writer_.truncate(whole_bytes_);  // a part of a record would end the file for its readers
    }
    append(&writer_, &event, step);
    writer_.flush();
    whole_bytes_ = writer_.size();
    failed_ = false;
  } catch (const IoError& error) {
    if (!failed_) {
      log("the curves for TensorBoard have a gap from step {} on: {}", step, error.what());
    }
    failed_ = true;
  }
}

}  // namespace lockstep
