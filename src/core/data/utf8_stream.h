#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Makes valid UTF-8 of bytes that arrive in pieces: a code point comes out when its last byte has
/// come in; bytes that are not UTF-8 come out as U+FFFD.
class Utf8Stream {
 public:
  /// What can be shown after these bytes.
  std::string feed(std::string_view bytes);
  /// What is left at the end of the text: U+FFFD for a code point that was cut off.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace lockstep
