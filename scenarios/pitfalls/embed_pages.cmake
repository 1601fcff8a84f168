# Writes pages.cpp: every rule's Markdown page as a raw string, found by the rule's id.
# Usage: cmake -DOUT=pages.cpp -DPAGES=a.md,b.md -P embed_pages.cmake
string(REPLACE "," ";" PAGES "${PAGES}")
set(rows "")
foreach(page IN LISTS PAGES)
  file(READ "${page}" text)
  get_filename_component(stem "${page}" NAME_WE)
  string(REGEX REPLACE "_.*" "" id "${stem}")
  string(TOUPPER "${id}" id)
  string(APPEND rows "    {\"${id}\", R\"bench_page(${text})bench_page\"sv},\n")
endforeach()
set(code "// Generated from scenarios/pitfalls/*.md.
#include \"scenarios/pitfalls/rule.hpp\"

namespace bench::pitfalls {
namespace {

using namespace std::string_view_literals;  // lengths come with them: clang gives up counting megabytes

struct Page {
  std::string_view id;
  std::string_view text;
};

constexpr Page kPages[] = {
${rows}};

}  // namespace

std::string_view page_of(const Rule& rule) {
  for (const Page& page : kPages)
    if (page.id == rule.id) return page.text;
  return {};
}

}  // namespace bench::pitfalls
")
file(WRITE "${OUT}" "${code}")
