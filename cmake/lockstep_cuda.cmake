# Finds the CUDA toolkit, or not, without a word from the user. Sets LOCKSTEP_HAS_CUDA.
set(LOCKSTEP_HAS_CUDA FALSE)
if(NOT LOCKSTEP_CUDA STREQUAL "OFF")
  # Set before the language is checked: the default of CMake 3.25 is an architecture that nvcc 13 warns about.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "90a-real;80-virtual")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Hopper's kernels are chosen for every GPU of compute capability 9.0, but wgmma is only in its code for 90a: in any
    # other their bodies are empty, and what they compute would be missing without a word.
    if(NOT CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)90a(-real|-virtual)?(;|$)")
      message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES is '${CMAKE_CUDA_ARCHITECTURES}', without 90a, which the kernels for "
        "Hopper need; leave it out, or have 90a-real in it, as in '90a-real;80-virtual'")
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    # CMake 3.25 does not know that nvcc 13 speaks C++20.
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
    endif()
    set(LOCKSTEP_HAS_CUDA TRUE)
  elseif(LOCKSTEP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_CUDA is ON but no nvcc was found; install the CUDA toolkit or set CUDACXX")
  endif()
endif()
if(LOCKSTEP_HAS_CUDA)
  message(STATUS "CUDA backend: ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "CUDA backend: not built (no nvcc); the CPU backend is complete without it")
endif()
