# Test targets. Labels: unit (one process), mpi (ranks under mpirun), fault (kills and lies), e2e (whole programs),
# lint (the tree itself), gpu (needs a GPU; fails without one).

# mpirun as every test uses it: any number of ranks on any number of cores, as root or not, one host, no ssh.
set(LOCKSTEP_MPIRUN ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none --mca plm isolated
    --mca btl self,vader,tcp)

# lockstep_test(NAME SOURCES... LIBS libs...) : a GoogleTest program in one process, label unit.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;LABEL" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE lockstep_warnings lockstep_sanitizer ${ARG_LIBS} GTest::gmock_main GTest::gtest)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# lockstep_mpi_test(NAME RANKS 2 3 4 SOURCES... LIBS libs...) : one GoogleTest program, run under mpirun once for each
# number of ranks; a failure on one rank fails it on all (tests/support/mpi_gtest_main.cpp).
function(lockstep_mpi_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "RANKS;SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE lockstep_warnings lockstep_sanitizer ${ARG_LIBS} mpi_gtest_main GTest::gmock GTest::gtest)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  foreach(ranks ${ARG_RANKS})
    add_test(NAME ${name}_np${ranks} COMMAND ${LOCKSTEP_MPIRUN} -np ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_np${ranks} PROPERTIES LABELS mpi TIMEOUT ${ARG_TIMEOUT} PROCESSORS 2)
  endforeach()
endfunction()

# lockstep_script_test(NAME LABEL label COMMAND ...) : a script that exits 0 when the property holds.
function(lockstep_script_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;PROCESSORS" "COMMAND" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS}
    ENVIRONMENT "LOCKSTEP_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()

# lockstep_isa_test(NAME) : runs a test program once more for each instruction set below the processor's best; one that
# the processor lacks is skipped, since nothing can run there.
function(lockstep_isa_test name)
  get_test_property(${name} LABELS labels)
  get_test_property(${name} TIMEOUT timeout)
  foreach(isa ${LOCKSTEP_ISAS})
    add_test(NAME ${name}_${isa} COMMAND ${name})
    set_tests_properties(${name}_${isa} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
      ENVIRONMENT LOCKSTEP_ISA=${isa} SKIP_REGULAR_EXPRESSION "this processor has [a-z0-9]+ at best")
  endforeach()
endfunction()
