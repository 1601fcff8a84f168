#include "scenarios/pitfalls/program/importers.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls::facts {
namespace {

bool is_of_name(char each) {
  return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_';
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end])))
      return true;
  }
  return false;
}

// The name that imports have for the file: of a package, its folder's.
std::string name_of(const diagnose::Module& module) {
  std::string_view path = module.path();
  path.remove_suffix(std::min(path.size(), path.size() - path.rfind('.')));
  if (path.ends_with("/__init__")) path = path.substr(0, path.rfind('/'));
  return std::string(path.substr(path.rfind('/') + 1));
}

bool has_import_of(std::string_view text, const std::string& name) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if ((line.starts_with("from ") || line.starts_with("import ")) && has_word(line, name))
      return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

bool is_imported_elsewhere(const Program& program, const diagnose::Module& module) {
  return any_importer(program, module, "", [](std::string_view) { return true; });
}

bool any_importer(const Program& program, const diagnose::Module& module,
                  const std::string& question,
                  const std::function<bool(std::string_view text)>& accepts) {
  const std::string name = name_of(module);
  return program.any_in_project(
      "imports the file " + name + " " + question,
      [&](std::string_view text) { return has_import_of(text, name) && accepts(text); });
}

}  // namespace bench::pitfalls::facts
