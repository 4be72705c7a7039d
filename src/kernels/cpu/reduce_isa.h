#pragma once

#include <cstdint>

#include "kernels/cpu/dispatch.h"

LOCKSTEP_PER_ISA(
    /* sums (columns) = the sums over the rows of in (rows, columns). */
    void sum_rows(int64_t rows, int64_t columns, float* sums, const float* in);
    /* to = from, or to + from when `accumulate` is set. */
    void put(bool accumulate, int64_t count, float* to, const float* from);
    /* to = a + b; `to` may be one of them. */
    void add_range(int64_t count, float* to, const float* a, const float* b);
    /* Sums in double; the order of the additions is the same on every instruction set. */
    double sum_range(int64_t count, const float* x);
    double sum_squares_range(int64_t count, const float* x);)
