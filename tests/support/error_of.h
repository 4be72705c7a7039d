#pragma once

#include <string>

#include "core/base/error.h"

namespace lockstep {

/// The message of the error of type E that `body` throws, or "no error".
template <class E, class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep
