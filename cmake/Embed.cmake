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
    set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
    target_sources(${target} PRIVATE ${out})
  endforeach()
endfunction()

# Large files: the assembler copies them as they are, which costs no compile time however large they are.
#   gauntlet_embed_raw(target symbol_prefix file...)  ->  extern "C" const std::byte <prefix>_<file name with _>_begin[], _end[]
enable_language(ASM)
function(gauntlet_embed_raw target prefix)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${prefix}_${name} symbol)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.S)
    file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
.section .rodata
.balign 64
.global @symbol@_begin
.global @symbol@_end
@symbol@_begin:
.incbin "@file@"
@symbol@_end:
.byte 0
.section .note.GNU-stack,"",%progbits
]])
    set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS ${file})
    target_sources(${target} PRIVATE ${out})
  endforeach()
endfunction()
