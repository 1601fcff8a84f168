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

std::string absolute_path(const std::string& path) {
  std::string full = absolute(path).string();
  if (full.size() > 1 && full.ends_with('/')) full.pop_back();
  return full;
}

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.starts_with(folder + '/');
}

std::string project_of(const std::string& path) {
  if (std::string repository = repository_around(path); !repository.empty()) return repository;
  std::error_code error;
  for (fs::path at = absolute(path).parent_path(); at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / "pyproject.toml", error) || fs::exists(at / "setup.py", error))
      return at.string();
  const std::string here = absolute_path(".");
  return is_within(absolute_path(path), here) ? here : std::string();
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
