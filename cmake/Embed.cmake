# Turns files into one C++ source that holds them as string views, so that the binary needs no data beside it.
#   gauntlet_embed(target symbol_prefix file...)  ->  std::string_view embedded::<file name with _>()
function(gauntlet_embed target)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} symbol)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cc)
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${out} -DSYMBOL=${symbol}
              -P ${PROJECT_SOURCE_DIR}/cmake/EmbedOne.cmake
      DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/EmbedOne.cmake VERBATIM)
    target_sources(${target} PRIVATE ${out})
  endforeach()
endfunction()
