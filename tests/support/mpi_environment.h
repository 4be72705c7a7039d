#pragma once

#include "comm/bootstrap.h"

/// The group that mpirun started; valid inside tests of a lockstep_mpi_test program.
lockstep::Bootstrap& test_bootstrap();
