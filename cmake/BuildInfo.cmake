# Compiler, flags and commit, for a run's manifest. The commit is read at build time; the source is rewritten
# only when it changed, so that an unchanged tree rebuilds nothing.
function(gauntlet_build_info target)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/build_info.cc)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  add_custom_target(build_info ALL
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${out} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
            "-DVERSION=${PROJECT_VERSION}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
            "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
            "-DFLAGS=${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}"
            "-DCUDA_COMPILER=${CMAKE_CUDA_COMPILER_VERSION}"
            -P ${PROJECT_SOURCE_DIR}/cmake/BuildInfoWrite.cmake
    BYPRODUCTS ${out} VERBATIM)
  set_source_files_properties(${out} PROPERTIES GENERATED TRUE SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${out})
  add_dependencies(${target} build_info)
endfunction()
