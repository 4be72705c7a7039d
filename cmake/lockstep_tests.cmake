# Test targets. Labels: unit (one process), mpi (ranks under mpirun), fault (kills and lies), e2e (whole programs),
# lint (the tree itself), gpu (needs a GPU; fails without one).

# mpirun as every test uses it: any number of ranks on any number of cores, as root or not, one host, no ssh.
set(LOCKSTEP_MPIRUN ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none --mca plm isolated
    --mca btl self,vader,tcp)

# A sanitizer makes programs several times slower: the limits of all tests are multiplied by LOCKSTEP_TIME_SCALE.
set(LOCKSTEP_TIME_SCALE 1)
if(LOCKSTEP_SANITIZER)
  set(LOCKSTEP_TIME_SCALE 4)
endif()

# What every test's environment tells the sanitizers; the suppressions are for libraries that are not the project's.
set(LOCKSTEP_TEST_ENVIRONMENT)
if(LOCKSTEP_SANITIZER STREQUAL "address")
  # The interceptor of GCC 12 takes some thread-local blocks for those of glibc 2.19 and makes the leak check read where
  # nothing is ("Tracer caught signal 11").
  set(LOCKSTEP_ASAN_OPTIONS "intercept_tls_get_addr=0")
  list(APPEND LOCKSTEP_TEST_ENVIRONMENT
    "ASAN_OPTIONS=${LOCKSTEP_ASAN_OPTIONS}"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1")
elseif(LOCKSTEP_SANITIZER STREQUAL "thread")
  list(APPEND LOCKSTEP_TEST_ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp:halt_on_error=1")
endif()
list(APPEND LOCKSTEP_TEST_ENVIRONMENT
  "LOCKSTEP_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" "LOCKSTEP_TIME_SCALE=${LOCKSTEP_TIME_SCALE}")

# lockstep_test_properties(NAME LABEL TIMEOUT PROCESSORS) : what every test is told, of which TIMEOUT is in seconds
# without a sanitizer.
function(lockstep_test_properties name label timeout processors)
  math(EXPR scaled "${timeout} * ${LOCKSTEP_TIME_SCALE}")
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${scaled} PROCESSORS ${processors}
    ENVIRONMENT "${LOCKSTEP_TEST_ENVIRONMENT}")
endfunction()

# lockstep_test(NAME SOURCES... LIBS libs...) : a GoogleTest program in one process, label unit. PROCESSORS: how many
# cores it keeps busy, 1 unless said.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;LABEL;PROCESSORS" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE lockstep_warnings lockstep_sanitizer ${ARG_LIBS} GTest::gmock_main GTest::gtest)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  lockstep_test_properties(${name} ${ARG_LABEL} ${ARG_TIMEOUT} ${ARG_PROCESSORS})
endfunction()

# lockstep_mpi_test(NAME RANKS 2 3 4 SOURCES... LIBS libs...) : one GoogleTest program, run under mpirun once for each
# number of ranks; a failure on one rank fails it on all (tests/support/mpi_gtest_main.cpp). Label mpi unless said.
function(lockstep_mpi_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "RANKS;SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL mpi)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE lockstep_warnings lockstep_sanitizer ${ARG_LIBS} mpi_gtest_main GTest::gmock GTest::gtest)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  foreach(ranks ${ARG_RANKS})
    add_test(NAME ${name}_np${ranks} COMMAND ${LOCKSTEP_MPIRUN} -np ${ranks} $<TARGET_FILE:${name}>)
    lockstep_test_properties(${name}_np${ranks} ${ARG_LABEL} ${ARG_TIMEOUT} 2)
  endforeach()
endfunction()

# lockstep_script_test(NAME LABEL label COMMAND ...) : a script that exits 0 when the property holds. TRACED: it runs
# programs under strace, where the leak check cannot work.
function(lockstep_script_test name)
  cmake_parse_arguments(ARG "TRACED" "LABEL;TIMEOUT;PROCESSORS" "COMMAND" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  lockstep_test_properties(${name} ${ARG_LABEL} ${ARG_TIMEOUT} ${ARG_PROCESSORS})
  if(ARG_TRACED AND LOCKSTEP_SANITIZER STREQUAL "address")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=${LOCKSTEP_ASAN_OPTIONS}:detect_leaks=0")
  endif()
endfunction()

# lockstep_isa_test(NAME) : runs a test program once more for each instruction set below the processor's best; one that
# the processor lacks is skipped, since nothing can run there.
function(lockstep_isa_test name)
  get_test_property(${name} LABELS labels)
  get_test_property(${name} TIMEOUT timeout)
  get_test_property(${name} PROCESSORS processors)
  foreach(isa ${LOCKSTEP_ISAS})
    add_test(NAME ${name}_${isa} COMMAND ${name})
    set_tests_properties(${name}_${isa} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} PROCESSORS ${processors}
      ENVIRONMENT "LOCKSTEP_ISA=${isa};${LOCKSTEP_TEST_ENVIRONMENT}"
      SKIP_REGULAR_EXPRESSION "this processor has [a-z0-9]+ at best")
  endforeach()
endfunction()
