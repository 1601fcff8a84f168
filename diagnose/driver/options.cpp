#include "diagnose/driver/options.hpp"

#include "scenarios/pitfalls/registry.hpp"

#include <algorithm>

namespace bench::diagnose {

bool DiagnoseOptions::ignores(const std::string& file, std::string_view id) const {
  if (per_file_ignores.empty()) return false;
  const pitfalls::Rule* rule = pitfalls::find_rule(id);
  if (rule == nullptr) return false;
  const std::vector<std::string> parts = parts_of_path(file);
  return std::any_of(per_file_ignores.begin(), per_file_ignores.end(),
                     [&](const FileIgnores& each) {
                       return any_means(each.rules, *rule) && each.files.matches(parts, false);
                     });
}

}  // namespace bench::diagnose
