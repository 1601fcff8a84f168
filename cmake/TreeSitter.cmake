# tree-sitter's core and its Python grammar as one static library, from the source archives that
# scripts/fetch_sources unpacks. The grammar's archive lacks the core's headers: they are laid out beside it.
set(TREE_SITTER_CORE ${BENCH_PYTHON_ENV}/sources/tree-sitter-0.24.0/tree_sitter/core/lib)
set(TREE_SITTER_PYTHON ${BENCH_PYTHON_ENV}/sources/tree_sitter_python-0.23.6/src)
if(NOT EXISTS ${TREE_SITTER_CORE}/src/lib.c OR NOT EXISTS ${TREE_SITTER_PYTHON}/scanner.c)
  message(FATAL_ERROR "no tree-sitter sources under ${BENCH_PYTHON_ENV}/sources: run scripts/fetch_sources ${BENCH_PYTHON_ENV}")
endif()

set(TREE_SITTER_HEADERS ${CMAKE_BINARY_DIR}/tree_sitter_headers)
foreach(header parser.h array.h alloc.h)
  configure_file(${TREE_SITTER_CORE}/src/${header} ${TREE_SITTER_HEADERS}/tree_sitter/${header} COPYONLY)
endforeach()

add_library(tree_sitter_python STATIC
  ${TREE_SITTER_CORE}/src/lib.c ${TREE_SITTER_PYTHON}/parser.c ${TREE_SITTER_PYTHON}/scanner.c)
target_include_directories(tree_sitter_python SYSTEM PUBLIC ${TREE_SITTER_CORE}/include ${TREE_SITTER_HEADERS}
  PRIVATE ${TREE_SITTER_CORE}/src)
# Hidden and not to be replaced, so that the core's many small functions are inlined; it asserts in its hot loops
# without NDEBUG.
target_compile_options(tree_sitter_python PRIVATE -w -O3 -fvisibility=hidden $<$<C_COMPILER_ID:GNU>:-fno-semantic-interposition>)
if(BENCH_FUZZ)  # memory is watched; coverage of 50,000 lines of tables would drown that of our code
  target_compile_options(tree_sitter_python PRIVATE -fsanitize=address)
endif()
target_compile_definitions(tree_sitter_python PRIVATE NDEBUG)
set_target_properties(tree_sitter_python PROPERTIES C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
