# Code that is compiled once for each instruction set and chosen when the program starts (kernels/cpu/dispatch.h).
set(LOCKSTEP_ISAS portable)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  list(APPEND LOCKSTEP_ISAS avx2 avx512)
endif()
set(LOCKSTEP_ISA_FLAGS_portable "")
# The psABI levels: what cpu_isa() asks the processor for is exactly what the compiler may use.
set(LOCKSTEP_ISA_FLAGS_avx2 -march=x86-64-v3)
set(LOCKSTEP_ISA_FLAGS_avx512 -march=x86-64-v4 -mprefer-vector-width=512)

# lockstep_isa_sources(TARGET SOURCES...) : adds each source to TARGET once for each instruction set, in a namespace of
# its own: LOCKSTEP_ISA names it. Always optimised: unoptimised vector code takes minutes where tests need seconds.
# Products and sums are not contracted behind the author's back, so that a tail rounds as the body does.
function(lockstep_isa_sources target)
  foreach(isa ${LOCKSTEP_ISAS})
    set(objects ${target}_${isa})
    add_library(${objects} OBJECT ${ARGN})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${objects} PRIVATE lockstep_warnings lockstep_sanitizer fmt::fmt)
    target_compile_options(${objects} PRIVATE -O3 -ffp-contract=off ${LOCKSTEP_ISA_FLAGS_${isa}})
    target_compile_definitions(${objects} PRIVATE LOCKSTEP_ISA=${isa})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_ISA_OBJECTS_${isa} $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
