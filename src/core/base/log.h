#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

/// Tags every later log line with this rank; until it is called lines carry no rank. Not
/// thread-safe: call at start.
void set_log_rank(int rank, int world_size);

/// Text from data as it may be shown: control bytes are escaped, because data must not be able to
/// drive a terminal. Line ends and tabs stay.
std::string printable(std::string_view text);

/// Writes one whole line to standard error in a single write, so that lines of several ranks do not
/// mix. Thread-safe. The text is made printable.
void log_line(std::string_view text);

/// Writes `program: message` as one line, whatever line ends the message has.
void log_error(std::string_view program, std::string message);

template <class... Args>
void log(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
