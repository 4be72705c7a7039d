#pragma once

#include <string_view>

namespace lockstep {

/// Runs a program's body; prints an error as one line, `program: message`, and returns its exit
/// code. bad_alloc is reported as out of memory, standard output that could not be written as an
/// I/O error.
int run_main(std::string_view program, int (*body)(int, char**), int argc, char** argv);

}  // namespace lockstep
