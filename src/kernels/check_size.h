#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// Throws InternalError when an op's view holds fewer elements than its shape says. Not inline:
/// nvcc 13 cannot check fmt's format strings.
void check_size(std::string_view view, int64_t size, int64_t needed);

}  // namespace lockstep
