# Script half of BuildInfo.cmake.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no
  OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(changes)
  string(APPEND commit "+changes")
endif()
string(STRIP "${FLAGS}" FLAGS)
set(text "#include \"core/build_info.h\"
namespace gauntlet {
BuildInfo build_info() {
  return {.version = \"${VERSION}\", .commit = \"${commit}\", .compiler = \"${COMPILER}\",
          .flags = \"${FLAGS}\", .cuda_compiler = \"${CUDA_COMPILER}\", .build_type = \"${BUILD_TYPE}\"};
}
}
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
