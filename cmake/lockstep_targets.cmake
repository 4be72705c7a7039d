# Rules that every target of the project follows, written once.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

add_library(lockstep_warnings INTERFACE)
target_compile_options(lockstep_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-Werror>)

add_library(lockstep_sanitizer INTERFACE)
if(LOCKSTEP_SANITIZER STREQUAL "address")
  target_compile_options(lockstep_sanitizer INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(lockstep_sanitizer INTERFACE -fsanitize=address,undefined)
  add_library(keep_plugins OBJECT ${PROJECT_SOURCE_DIR}/tests/support/keep_plugins.cpp)
  target_link_libraries(lockstep_sanitizer INTERFACE $<TARGET_OBJECTS:keep_plugins>)
elseif(LOCKSTEP_SANITIZER STREQUAL "thread")
  # Boost.Asio's fences, of which the sanitizer knows nothing, are beside atomics that it does follow.
  target_compile_options(lockstep_sanitizer INTERFACE -fsanitize=thread -Wno-unknown-pragmas -Wno-tsan)
  target_link_options(lockstep_sanitizer INTERFACE -fsanitize=thread)
elseif(NOT LOCKSTEP_SANITIZER STREQUAL "")
  message(FATAL_ERROR "LOCKSTEP_SANITIZER is '${LOCKSTEP_SANITIZER}'; it takes address, thread or nothing")
endif()

# lockstep_library(NAME SOURCES... ) : a static library of the project, includes rooted at src/.
function(lockstep_library name)
  add_library(${name} STATIC ${ARGN})
  add_library(lockstep::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC lockstep_sanitizer PRIVATE lockstep_warnings)
endfunction()

# lockstep_program(NAME SOURCE LIBS...) : a program in the build's bin folder.
function(lockstep_program name source)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE lockstep_warnings lockstep_sanitizer ${ARGN})
endfunction()
