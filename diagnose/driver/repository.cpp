#include "diagnose/driver/repository.hpp"

#include <filesystem>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

fs::path absolute(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  return (error ? fs::path(path) : full).lexically_normal();
}

}  // namespace

std::string repository_around(const std::string& path) {
  std::error_code error;
  for (fs::path at = absolute(path).parent_path(); at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / ".git", error)) return at.string();
  return {};
}

std::string RepositoryPaths::of(const std::string& path) {
  if (path.starts_with('<')) return path;  // a launch line, standard input
  const fs::path full = absolute(path);
  const std::string folder = full.parent_path().string();
  auto known = roots_.find(folder);
  if (known == roots_.end()) known = roots_.emplace(folder, repository_around(path)).first;
  return known->second.empty() ? path : full.lexically_relative(known->second).string();
}

}  // namespace bench::diagnose
