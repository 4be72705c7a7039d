#include "core/data/utf8_stream.h"

#include "core/data/utf8.h"

namespace lockstep {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr size_t kLongest = 4;                             // bytes of a code point

// Whether more bytes could make these, fewer than four, into a code point.
bool could_continue(std::string_view bytes) {
  for (const std::string_view tail : {"\x80", "\x80\x80", "\x80\x80\x80", "\x90", "\x90\x80",
                                      "\x90\x80\x80", "\xa0", "\xa0\x80"}) {
    const std::string whole = std::string(bytes) + std::string(tail);
    if (whole.size() <= kLongest && decode_utf8(whole, 0).length == whole.size()) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string Utf8Stream::feed(std::string_view bytes) {
  pending_ += bytes;
  std::string shown;
  size_t offset = 0;
  while (offset < pending_.size()) {
    const size_t length = decode_utf8(pending_, offset).length;
    if (length > 0) {
      shown.append(pending_, offset, length);
      offset += length;
    } else if (could_continue(std::string_view(pending_).substr(offset))) {
      break;
    } else {
      shown += kReplacement;
      ++offset;
    }
  }
  pending_.erase(0, offset);
  return shown;
}

std::string Utf8Stream::finish() {
  std::string shown = pending_.empty() ? "" : std::string(kReplacement);
  pending_.clear();
  return shown;
}

}  // namespace lockstep
