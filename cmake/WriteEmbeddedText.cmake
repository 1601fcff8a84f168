# Script behind bench_embed_text: writes OUTPUT, which defines SYMBOL() over FILES ("a|b|c").
string(REPLACE "|" ";" files "${FILES}")
string(REGEX MATCH "^(.*)::([^:]+)$" matched "${SYMBOL}")
set(namespace ${CMAKE_MATCH_1})
set(function ${CMAKE_MATCH_2})

set(rows "")
set(count 0)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  # A string literal of its own for every 4000 characters: some compilers limit their length.
  string(LENGTH "${text}" length)
  set(literals "")
  set(begin 0)
  while(begin LESS length)
    string(SUBSTRING "${text}" ${begin} 4000 piece)
    string(APPEND literals "R\"~~text~~(${piece})~~text~~\"\n")
    math(EXPR begin "${begin} + 4000")
  endwhile()
  if(literals STREQUAL "")
    set(literals "\"\"")
  endif()
  string(APPEND rows "    EmbeddedText{\"${name}\", ${literals}},\n")
  math(EXPR count "${count} + 1")
endforeach()

if(count EQUAL 0)
  set(body "  return {};\n")
else()
  set(body "  static constexpr EmbeddedText kFiles[] = {\n${rows}  };\n  return kFiles;\n")
endif()
file(WRITE ${OUTPUT} "#include \"bench/core/embedded_text.hpp\"\n
namespace ${namespace} {
std::span<const EmbeddedText> ${function}();
std::span<const EmbeddedText> ${function}() {\n${body}}\n}  // namespace ${namespace}\n")
