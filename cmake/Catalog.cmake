# Finds the targets below a folder, compiles their sides and writes the index that registers them: one source per chapter,
# and one that joins the chapters. A pair is <root>/<chapter>/<pair>/pair.cc with baseline and optimized; a lab is lab.cc
# with rung_<n>_<name>, two or more. Either may have yardstick_<name>, a library's way. A side exists for a backend when
# its file exists: baseline.cc, optimized.cu, optimized.sm90a.cu, baseline.ranks.cc ... A pair that runs the engine has
# engine_pair.cc in place of pair.cc, and is linked with it.
#   gauntlet_catalog(library root [chapter...])
set(GAUNTLET_CHAPTERS "" CACHE STRING "chapters to build, as in ch07;labs; empty: all")

# The sides of a folder, in order, as <name>|<role>|<file>: those whose files end as the pattern says.
function(gauntlet_sides out folder ending)
  set(sides "")
  foreach(name baseline optimized)
    file(GLOB files CONFIGURE_DEPENDS ${folder}/${name}*)
    foreach(file ${files})
      get_filename_component(base ${file} NAME)
      if(base MATCHES "^${name}${ending}$")
        list(APPEND sides "${name}|${name}|${file}")
      endif()
    endforeach()
  endforeach()
  # Numbers sort as numbers: rung_10 follows rung_9.
  file(GLOB files CONFIGURE_DEPENDS ${folder}/rung_*)
  list(SORT files COMPARE NATURAL)
  set(numbers "")
  foreach(file ${files})
    get_filename_component(base ${file} NAME)
    if(base MATCHES "^rung_([0-9]+)_([a-z0-9_]+)${ending}$")
      set(number ${CMAKE_MATCH_1})
      list(APPEND sides "${CMAKE_MATCH_2}|rung|${file}")
      if(number IN_LIST numbers)
        message(FATAL_ERROR "${file}: there is another rung ${number}")
      endif()
      list(APPEND numbers ${number})
    endif()
  endforeach()
  file(GLOB files CONFIGURE_DEPENDS ${folder}/yardstick*)
  foreach(file ${files})
    get_filename_component(base ${file} NAME)
    if(base MATCHES "^yardstick_([a-z0-9_]+)${ending}$")
      list(APPEND sides "${CMAKE_MATCH_1}|yardstick|${file}")
    endif()
  endforeach()
  set(${out} "${sides}" PARENT_SCOPE)
endfunction()

# Refuses a set of sides that cannot be compared.
function(gauntlet_check_sides folder backend)
  set(roles "")
  set(names "")
  foreach(side ${ARGN})
    string(REPLACE "|" ";" parts "${side}")
    list(GET parts 0 name)
    list(GET parts 1 role)
    list(APPEND roles ${role})
    if(name IN_LIST names)
      message(FATAL_ERROR "${folder}: two ${backend} sides are called ${name}")
    endif()
    list(APPEND names ${name})
  endforeach()
  list(REMOVE_ITEM roles yardstick)
  if(roles MATCHES "^rung(;rung)+$")
    return()
  endif()
  if(NOT roles STREQUAL "baseline;optimized")
    message(FATAL_ERROR "${folder}: ${backend} sides are ${roles}; a pair needs one baseline and one optimized file, "
      "a lab two rungs or more")
  endif()
endfunction()

function(gauntlet_catalog library root)
  set(wanted ${ARGN})
  set(needs_engine OFF)
  file(GLOB declared CONFIGURE_DEPENDS ${root}/*/*/pair.cc ${root}/*/*/engine_pair.cc ${root}/*/*/lab.cc)
  file(GLOB chapter_lists CONFIGURE_DEPENDS ${root}/*/techniques)
  set(sources "")
  set(chapters "")

  foreach(file ${declared})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    get_filename_component(chapter_folder ${folder} DIRECTORY)
    get_filename_component(chapter ${chapter_folder} NAME)
    get_filename_component(form ${file} NAME_WE)  # pair, engine_pair or lab
    if(wanted AND NOT chapter IN_LIST wanted)
      continue()
    endif()
    if(form STREQUAL engine_pair)
      set(needs_engine ON)
      set(form pair)
    endif()
    list(APPEND chapters ${chapter})
    set(ns ${chapter}::${name})
    list(APPEND sources ${file})
    # References go over whole outputs in float64, and more often than sides are built.
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -O3)
    string(APPEND includes_${chapter} "#include \"${folder}/${form}.h\"\n")
    string(APPEND declarations_${chapter} "namespace gauntlet::${ns} {\nlab::Pair<Params> ${form}();\n")
    set(entry "")

    foreach(backend cpu ranks cuda)
      set(ending "\\.cc")
      set(context Cpu)
      if(backend STREQUAL ranks)
        set(ending "\\.ranks\\.cc")
        set(context Ranks)
      elseif(backend STREQUAL cuda)
        set(ending "(\\.sm[0-9]+a)?\\.cu")
        set(context Cuda)
      endif()
      gauntlet_sides(sides ${folder} ${ending})
      if(sides STREQUAL "")
        continue()
      endif()
      gauntlet_check_sides(${folder} ${backend} ${sides})
      string(APPEND declarations_${chapter} "namespace ${backend} {\n")
      string(APPEND entry "\n         .${backend} = {")
      foreach(side ${sides})
        string(REPLACE "|" ";" parts "${side}")
        list(GET parts 0 side_name)
        list(GET parts 1 role)
        list(GET parts 2 side_file)
        set(named "\"${side_name}\", lab::SideRole::${role}")
        if(backend STREQUAL cuda)
          gauntlet_cuda_arch(${side_file} arch)
          if(arch)
            set(arch sm_${arch})
          endif()
          string(APPEND named ", \"${arch}\"")
        endif()
        if(backend STREQUAL cuda AND NOT GAUNTLET_HAVE_CUDA)
          string(APPEND entry "lab::uncompiled_side(${named}), ")
          continue()
        endif()
        list(APPEND sources ${side_file})
        string(APPEND declarations_${chapter} "lab::Side ${side_name}(const Params&, const lab::${context}&);\n")
        string(APPEND entry "lab::${backend}_side<${ns}::Params>(${named}, ${ns}::${backend}::${side_name}), ")
        if(backend STREQUAL cuda)
          gauntlet_cuda_sources(${side_file})
        elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
          # A loop that crosses a 64-byte line can take 1.8 times as long as the same instructions within one, so where
          # the linker happens to put a side must not decide.
          set_property(SOURCE ${side_file} APPEND PROPERTY
            COMPILE_OPTIONS -O3 -march=x86-64-v3 -falign-functions=64 -falign-loops=64)
        endif()
      endforeach()
      string(APPEND entry "},")
      string(APPEND declarations_${chapter} "}\n")
    endforeach()
    if(entry STREQUAL "")
      message(FATAL_ERROR "${folder}: no sides; add baseline.cc and optimized.cc, or baseline.cu and optimized.cu")
    endif()
    string(APPEND declarations_${chapter} "}\n")
    string(APPEND entries_${chapter} "      lab::make_target<${ns}::Params>(\n"
      "        {.chapter = \"${chapter}\", .name = \"${name}\",${entry}},\n        ${ns}::${form}()),\n")
  endforeach()

  set(techniques "")
  foreach(file ${chapter_lists})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(chapter_folder ${file} DIRECTORY)
    get_filename_component(chapter ${chapter_folder} NAME)
    file(STRINGS ${file} lines REGEX "^[a-z]")
    foreach(line ${lines})
      string(REGEX MATCH "^[a-z0-9_]+" technique "${line}")
      string(APPEND techniques "      {\"${chapter}\", \"${technique}\"},\n")
    endforeach()
  endforeach()

  list(REMOVE_DUPLICATES chapters)
  set(chapter_functions "")
  set(chapter_calls "")
  foreach(chapter ${chapters})
    set(index ${CMAKE_CURRENT_BINARY_DIR}/${library}_${chapter}.cc)
    set(includes "${includes_${chapter}}")
    set(declarations "${declarations_${chapter}}")
    set(entries "${entries_${chapter}}")
    file(CONFIGURE OUTPUT ${index} @ONLY CONTENT [[
// Generated by cmake/Catalog.cmake from the folders of chapter @chapter@.
#include "lab/author/target.h"
@includes@
@declarations@
namespace gauntlet::@chapter@ {
std::vector<lab::Target> targets() {
  return {
@entries@  };
}
}  // namespace gauntlet::@chapter@
]])
    list(APPEND sources ${index})
    string(APPEND chapter_functions "namespace gauntlet::${chapter} {\nstd::vector<lab::Target> targets();\n}\n")
    string(APPEND chapter_calls "  for (lab::Target& target : gauntlet::${chapter}::targets()) all.push_back(std::move(target));\n")
  endforeach()
  set(index ${CMAKE_CURRENT_BINARY_DIR}/${library}_index.cc)
  file(CONFIGURE OUTPUT ${index} @ONLY CONTENT [[
// Generated by cmake/Catalog.cmake from the folders of the catalogue.
#include "lab/author/catalog.h"
@chapter_functions@
namespace gauntlet::lab::inline author {
Catalog load_catalog() {
  std::vector<Target> all;
@chapter_calls@  return Catalog(std::move(all), {
@techniques@  });
}
}  // namespace gauntlet::lab::inline author
]])
  add_library(${library} OBJECT ${sources} ${index})
  target_link_libraries(${library} PUBLIC gauntlet_flags)
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR})
  if(needs_engine)
    target_link_libraries(${library} PUBLIC gauntlet_server gauntlet_load)
  endif()
  if(GAUNTLET_HAVE_CUDA)
    target_include_directories(${library} PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
endfunction()
