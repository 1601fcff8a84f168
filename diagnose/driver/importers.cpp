#include "diagnose/driver/importers.hpp"

#include "diagnose/driver/import_texts.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxBytes = 16U << 20;  // of all files together
constexpr std::size_t kMaxImporters = 64;

// The names of an import are those of a file's path, at its end.
bool is_end_of(const std::vector<std::string>& named, const std::vector<std::string>& path) {
  return named.size() <= path.size() && named.back() != "*" &&
         std::equal(named.rbegin(), named.rend(), path.rbegin(),
                    [](const std::string& a, const std::string& b) { return a == "*" || a == b; });
}

// a, b, c for a/b/c.py and for a/b/c/__init__.py.
std::vector<std::string> parts_of(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(2);
  if (path.ends_with(".py")) path.remove_suffix(3);
  std::vector<std::string> out = split(path, '/');
  if (!out.empty() && out.back() == "__init__") out.pop_back();
  return out;
}

std::vector<std::string> folder_of(const std::string& path) {
  std::vector<std::string> out = split(path.starts_with("./") ? path.substr(2) : path, '/');
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace

bool may_import(const std::string& importer, std::string_view import, const std::string& module) {
  const std::vector<std::string> target = parts_of(module);
  const std::size_t dots = std::min(import.find_first_not_of('.'), import.size());
  const std::vector<std::string> named = split(import.substr(dots), '.');
  if (target.empty() || (named.empty() && dots == 0)) return false;
  std::vector<std::string> folder = folder_of(importer);
  if (dots > 0) {
    if (folder.size() + 1 < dots) return false;
    folder.resize(folder.size() + 1 - dots);
    folder.insert(folder.end(), named.begin(), named.end());
    return folder == target;
  }
  if (!is_end_of(named, target)) return false;
  // One word is a file beside the importer, or at the root.
  if (named.size() > 1 || target.size() == 1) return true;
  folder.push_back(named.front());
  return folder == target;
}

namespace {

// `import loop` by a file whose program adds lib/ to its search path is that of lib/loop.py, unless
// there is one beside the importer or at the root.
bool may_be_on_added_path(const std::string& importer, const std::string& import,
                          const std::string& module, const std::set<std::string>& files) {
  const std::vector<std::string> target = parts_of(module);
  if (import.find('.') != std::string::npos || target.empty() || target.back() != import)
    return false;
  const std::string beside = importer.substr(0, importer.rfind('/') + 1) + import;
  for (const std::string& stem : {beside, import})
    if (files.contains(stem + ".py") || files.contains(stem + "/__init__.py")) return false;
  return true;
}

}  // namespace

std::vector<std::string> importers_of(
    const std::string& module, const std::vector<std::string>& files,
    const std::function<std::optional<std::string>(const std::string& path)>& read) {
  struct Importer {
    std::string path;
    std::vector<std::string> imports;
    bool is_found = false;
  };
  std::vector<Importer> all;
  std::size_t bytes = 0;
  bool adds_paths = false;
  for (const std::string& file : files) {
    const auto text = read(file);
    if (!text || file == module) continue;
    bytes += text->size();
    if (bytes > kMaxBytes) break;
    all.push_back({file, imports_in(*text)});
    adds_paths = adds_paths || text->find("sys.path") != std::string::npos;
  }
  const std::set<std::string> known(files.begin(), files.end());
  const auto leads_to = [&](const std::string& importer, const std::string& import,
                            const std::string& file) {
    return may_import(importer, import, file) ||
           (adds_paths && may_be_on_added_path(importer, import, file, known));
  };
  std::vector<std::string> out{module};
  for (std::size_t next = 0; next < out.size() && out.size() < kMaxImporters; ++next)
    for (Importer& each : all) {
      if (each.is_found) continue;
      each.is_found = std::any_of(
          each.imports.begin(), each.imports.end(),
          [&](const std::string& import) { return leads_to(each.path, import, out[next]); });
      if (each.is_found) out.push_back(each.path);
    }
  out.erase(out.begin());
  return out;
}

}  // namespace bench::diagnose
