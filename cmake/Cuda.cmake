# Finds the CUDA toolkit if there is one and says how device code is compiled. Sets GAUNTLET_HAVE_CUDA.
include(CheckLanguage)

set(GAUNTLET_HAVE_CUDA OFF)
if(NOT GAUNTLET_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  # Each file names its own architectures below; CMake must not add its default.
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(GAUNTLET_HAVE_CUDA ON)
  elseif(GAUNTLET_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GAUNTLET_CUDA=ON but no nvcc was found; install the CUDA toolkit or set CUDACXX")
  endif()
endif()
message(STATUS "CUDA sources: ${GAUNTLET_HAVE_CUDA}")

if(GAUNTLET_HAVE_CUDA)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  # The launcher fails a compilation that reports lost performance (C7508, C7515, C7519): ptxas prints
  # those as information, so -Werror alone does not see them.
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/strict_nvcc.sh ${CCACHE})
  # CMake 3.25 drops CMAKE_CUDA_STANDARD 20 without a word.
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>
    $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>
    $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers>")
endif()

# Which GPU a CUDA source is for, from its name: x.sm90a.cu, x.sm100a.cu, or any (x.cu).
function(gauntlet_cuda_arch file out)
  if(file MATCHES "\\.sm([0-9]+a)\\.cu$")
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
  else()
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# Architectures and spill checks of CUDA sources. A file whose subject is spilling says so with the line
# "// subject: register spilling" and is compiled without the check.
function(gauntlet_cuda_sources)
  foreach(file ${ARGN})
    gauntlet_cuda_arch(${file} arch)
    if(arch)
      set(options -gencode=arch=compute_${arch},code=sm_${arch})
    else()
      # Tuned machine code for Hopper, PTX for any other GPU from Ampere on.
      set(options -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=compute_80)
    endif()
    file(STRINGS ${file} spill_subject REGEX "^// subject: register spilling$")
    if(NOT spill_subject)
      list(APPEND options -Xptxas=--warn-on-spills,--warning-as-error)
    endif()
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${options})
  endforeach()
endfunction()
