#include "scenarios/pitfalls/reach/backups.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bench::pitfalls::facts {
namespace {

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_in_backups(std::string_view path) {
  const std::string folders = lowered(path.substr(0, path.size() - name_of(path).size()));
  return contains(folders, "backup/") || contains(folders, "backups/") ||
         contains(folders, "_bak/") || folders.starts_with("bak/") || contains(folders, "/bak/");
}

// Most functions of the script's file are in the text, too.
bool shares_functions(const diagnose::Module& script, std::string_view text) {
  const auto& functions = script.functions();
  const auto shared = std::count_if(functions.begin(), functions.end(), [&](const auto& each) {
    return !each.name.empty() && contains(text, "def " + std::string(each.name) + "(");
  });
  return shared > 0 && 2 * static_cast<std::size_t>(shared) >= functions.size();
}

}  // namespace

bool is_backup(const Program& program) {
  const diagnose::Module& script = program.root();
  if (!is_in_backups(script.path()) || !program.launches().empty()) return false;
  const auto copies = program.where_in_project([&](std::string_view text) {
    return shares_functions(script, text) ? std::optional<std::uint32_t>(1) : std::nullopt;
  });
  return std::any_of(copies.begin(), copies.end(), [&](const auto& copy) {
    return !is_in_backups(copy.first) && name_of(copy.first) == name_of(script.path());
  });
}

}  // namespace bench::pitfalls::facts
