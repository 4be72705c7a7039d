#include "trainer/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"

namespace lockstep {
namespace {

std::string lines_up_to(const std::string& content, int64_t step) {
  std::istringstream lines(content);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    long long at = 0;
    if (std::sscanf(line.c_str(), R"({"step": %lld,)", &at) == 1 && at <= step &&
        line.back() == '}') {
      kept += line + '\n';
    }
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, int64_t first_step) : path_(std::move(path)) {
  const bool continues = first_step > 0 && std::filesystem::exists(path_);
  replace_file(path_, continues ? lines_up_to(read_file(path_), first_step) : std::string());
  file_ = open_file(path_, O_WRONLY | O_APPEND | O_CLOEXEC);
}

void MetricsFile::follow_path() {
  if (leads_to(path_, file_.get())) {
    return;
  }
  std::error_code unknown;  // then opening it says why
  if (std::filesystem::exists(path_, unknown)) {
    throw IoError("{} was replaced by another file", path_.string());
  }
  file_ = open_file(path_, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC);
  torn_ = false;
  log("{} was deleted; it begins anew", path_.string());
}

void MetricsFile::write_line(const std::string& line) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  try {
    const std::string text = (torn_ ? "\n" : "") + line + "\n";
    write_all(file_.get(), bytes_of(text), path_);
    torn_ = false;
  } catch (const IoError&) {
    torn_ = end < 0 || ::ftruncate(file_.get(), end) != 0;
    throw;
  }
}

void MetricsFile::append(const std::string& line) {
  try {
    follow_path();
    write_line(line);
  } catch (const IoError& error) {
    if (!std::exchange(failed_, true)) {
      log("{}; the run goes on without these metrics", error.what());
    }
  }
}

}  // namespace lockstep
