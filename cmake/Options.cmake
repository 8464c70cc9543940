# Warnings, ccache, sanitizers: what every target shares.
set(GAUNTLET_CUDA AUTO CACHE STRING "AUTO (where a toolkit is found), ON (required) or OFF")
set(GAUNTLET_SANITIZE "" CACHE STRING "sanitizers to build with, as in address,undefined")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # Without this sloppiness ccache refuses every compilation that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
set(GAUNTLET_PCH ON CACHE BOOL "precompile the large headers (json, fmt, CLI11, gtest); without, a forgotten include shows")

find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)
find_path(SQLITE3_INCLUDE sqlite3.h REQUIRED)
# The archive, not the shared object: the binary must start on machines without libsqlite3.
find_library(SQLITE3_ARCHIVE libsqlite3.a REQUIRED)
find_path(BOOST_INCLUDE boost/beast.hpp REQUIRED)
find_library(SSL_ARCHIVE libssl.a REQUIRED)
find_library(CRYPTO_ARCHIVE libcrypto.a REQUIRED)

add_library(gauntlet_flags INTERFACE)
target_compile_options(gauntlet_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion;-Werror>)
target_include_directories(gauntlet_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(gauntlet_flags INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(gauntlet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-attributes;-Wno-ignored-attributes;-Wno-missing-designated-field-initializers>)
else()
  target_compile_options(gauntlet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
endif()
if(GAUNTLET_SANITIZE)
  target_compile_options(gauntlet_flags INTERFACE
    -fsanitize=${GAUNTLET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(gauntlet_flags INTERFACE -fsanitize=${GAUNTLET_SANITIZE})
endif()

# The headers that take longer to parse than most of our files do. C++ only: device code keeps host libraries out.
function(gauntlet_precompile target)
  if(GAUNTLET_PCH)
    set(headers "")
    foreach(header ${ARGN})
      list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
    endforeach()
    target_precompile_headers(${target} PRIVATE ${headers})
    # GCC 12 takes the library's string code for ours when it comes precompiled, and warns of overlaps in it that
    # cannot happen (its bug 105651).
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>>)
  endif()
endfunction()
set(GAUNTLET_STANDARD_HEADERS algorithm chrono filesystem functional map memory optional regex set span sstream string
  string_view unordered_map variant vector)
