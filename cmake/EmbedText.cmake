# bench_embed_text(TARGET SYMBOL namespace::function FILES a.toml ...): compiles text files into a
# library, so that the program finds them wherever it is installed. The files become rows
# {file name, contents} of the table that `SYMBOL()` returns (bench/core/embedded_text.hpp).
set(BENCH_EMBED_TEXT_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/WriteEmbeddedText.cmake)

function(bench_embed_text target)
  cmake_parse_arguments(ARG "" "SYMBOL" "FILES" ${ARGN})
  string(REPLACE "::" "_" stem ${ARG_SYMBOL})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${stem}.cpp)
  set(paths "")
  foreach(file ${ARG_FILES})
    get_filename_component(path ${file} ABSOLUTE)
    list(APPEND paths ${path})
  endforeach()
  list(JOIN paths "|" joined)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSYMBOL=${ARG_SYMBOL} "-DFILES=${joined}"
            -P ${BENCH_EMBED_TEXT_SCRIPT}
    DEPENDS ${paths} ${BENCH_EMBED_TEXT_SCRIPT}
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
