# Helpers that keep every room's CMakeLists.txt to a list of files.

# bench_flags(TARGET): the warnings and sanitizers every LibTorch-free target is built with.
function(bench_flags target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers
    -Wno-restrict)  # GCC 12 sees overlaps in std::string that are not there (GCC bug 105651)
  if(BENCH_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${BENCH_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${BENCH_SANITIZE})
  endif()
endfunction()

# bench_direct_calls(TARGET): calls within a file may be inlined. Position independent code keeps each
# function replaceable by another library's otherwise, and no shared library is made of the target.
function(bench_direct_calls target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # Clang does so by itself
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
endfunction()

# bench_library(NAME SOURCES a.cpp ... LINKS lib ...): one room as a static library.
function(bench_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC ${ARG_LINKS})
  bench_flags(${name})
endfunction()
