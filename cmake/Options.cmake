# Warnings, ccache, sanitizers: what every target shares.
set(GAUNTLET_CUDA AUTO CACHE STRING "AUTO (where a toolkit is found), ON (required) or OFF")
set(GAUNTLET_SANITIZE "" CACHE STRING "sanitizers to build with, as in address,undefined")

# Every compilation and link leaves its CPU time in compile_times.log, which tools/build_budget.sh adds up.
find_program(CCACHE ccache)
set(GAUNTLET_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/timed_compile.sh ${CMAKE_BINARY_DIR}/compile_times.log)
set(CMAKE_C_COMPILER_LAUNCHER ${GAUNTLET_LAUNCHER} ${CCACHE})
set(CMAKE_CXX_COMPILER_LAUNCHER ${GAUNTLET_LAUNCHER} ${CCACHE})
set(CMAKE_CXX_LINKER_LAUNCHER ${GAUNTLET_LAUNCHER})
# Most of a file's compile time goes into templates of the same few libraries: files compiled together pay for them once.
# A build without either shows a forgotten include, and compiles one changed file sooner.
set(GAUNTLET_PCH ON CACHE BOOL "precompile the large headers (json, fmt, gtest)")
set(GAUNTLET_UNITY ON CACHE BOOL "compile the files of a folder a few at a time")

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

# Without either, what needs it is skipped and says so. Archives, as above.
find_path(LIBURING_INCLUDE liburing.h)
find_library(LIBURING_ARCHIVE liburing.a)
find_path(LZ4_INCLUDE lz4.h)
find_library(LZ4_ARCHIVE liblz4.a)

add_library(gauntlet_flags INTERFACE)
target_compile_options(gauntlet_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wno-sign-conversion;-Werror>)
target_include_directories(gauntlet_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(gauntlet_flags INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(gauntlet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-attributes;-Wno-ignored-attributes;-Wno-missing-designated-field-initializers>)
else()
  target_compile_options(gauntlet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
endif()
# With little optimization GCC 12 cannot follow a coroutine's frame to its own operator delete, nor a variant to its member.
target_compile_options(gauntlet_flags INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Debug>,$<COMPILE_LANGUAGE:CXX>>:-Wno-mismatched-new-delete;-Wno-maybe-uninitialized>)
# A local name may be that of another file's global one, where they are compiled together.
if(NOT GAUNTLET_UNITY)
  target_compile_options(gauntlet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(gauntlet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow=local>)
endif()
if(GAUNTLET_SANITIZE)
  target_compile_options(gauntlet_flags INTERFACE
    -fsanitize=${GAUNTLET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(gauntlet_flags INTERFACE -fsanitize=${GAUNTLET_SANITIZE})
endif()

# fmt, compiled once: header-only, every file that formats a string spends two seconds on the same functions, and Debian
# has no archive of it.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fmt.cc CONTENT [[
#include <fmt/format-inl.h>
FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template locale_ref::locale_ref(const std::locale&);
template auto locale_ref::get<std::locale>() const -> std::locale;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
}
FMT_END_NAMESPACE
]])
add_library(gauntlet_fmt STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/fmt.cc)
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(gauntlet_fmt SYSTEM PUBLIC ${fmt_include})
target_link_libraries(gauntlet_fmt PRIVATE gauntlet_flags)

# Asio and Beast likewise: what is no template, compiled once.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/boost.cc CONTENT [[
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
]])
add_library(gauntlet_boost STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/boost.cc)
target_include_directories(gauntlet_boost SYSTEM PUBLIC ${BOOST_INCLUDE})
target_compile_definitions(gauntlet_boost PUBLIC BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(gauntlet_boost PUBLIC ${SSL_ARCHIVE} ${CRYPTO_ARCHIVE} ${CMAKE_DL_LIBS} PRIVATE gauntlet_flags)

# The headers that take longer to parse than most of our files do, precompiled once for the libraries, once for the
# commands and once for the tests. C++ only: device code keeps host libraries out.
function(gauntlet_precompiled name)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PUBLIC gauntlet_flags gauntlet_fmt nlohmann_json::nlohmann_json)
  set(headers "")
  foreach(header ${ARGN})
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
  endforeach()
  target_precompile_headers(${name} PRIVATE ${headers})
  gauntlet_precompiled_options(${name})
endfunction()
function(gauntlet_precompiled_options target)
  # GCC 12 takes the library's string code for ours when it comes precompiled, and warns of overlaps in it that
  # cannot happen (its bug 105651).
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>>)
endfunction()
set(standard_headers algorithm chrono filesystem functional map memory optional set span sstream string string_view
  unordered_map variant vector fmt/format.h nlohmann/json.hpp)
if(GAUNTLET_PCH)
  gauntlet_precompiled(gauntlet_headers ${standard_headers})
  gauntlet_precompiled(gauntlet_command_headers ${standard_headers} CLI/CLI.hpp)
  gauntlet_precompiled(gauntlet_test_headers ${standard_headers} gtest/gtest.h gmock/gmock.h)
  target_link_libraries(gauntlet_test_headers PUBLIC GTest::gtest GTest::gmock)  # for their macros
endif()

# How our own C++ is compiled quickly: with precompiled headers (gauntlet_headers and its like), and several files at a
# time. A file with options of its own is left out by CMake.
function(gauntlet_compile_together target headers)
  gauntlet_use_precompiled(${target} ${headers})
  gauntlet_unity(${target} 8)
endfunction()
function(gauntlet_use_precompiled target headers)
  if(GAUNTLET_PCH)
    target_precompile_headers(${target} REUSE_FROM ${headers})
    gauntlet_precompiled_options(${target})
  endif()
endfunction()
# Rooms (subfolders) stay apart, so that a name needs to be the only one in its room alone.
function(gauntlet_unity target batch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${GAUNTLET_UNITY} UNITY_BUILD_MODE GROUP)
  if(GAUNTLET_UNITY)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cc$")
    foreach(source ${sources})
      get_filename_component(room ${source} DIRECTORY)
      get_filename_component(room ${room} NAME)
      list(APPEND files_${room} ${source})
      list(LENGTH files_${room} place)
      math(EXPR group "(${place} - 1) / ${batch}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room}_${group})
    endforeach()
    # A source that others are compiled with looks like a header to GCC.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>>)
  endif()
endfunction()

# What runs once: half the size. Its precompiled headers must say so, too.
function(gauntlet_small target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Os>)
endfunction()

# What is not in any measured or served path: time spent optimising it is lost to whoever builds.
function(gauntlet_cold target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()
