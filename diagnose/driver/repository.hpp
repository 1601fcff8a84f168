// Where files lie in their repository: paths that are the same from whichever folder of it the
// program runs.
#pragma once

#include <map>
#include <string>

namespace bench::diagnose {

// The folder of the path or the nearest above it that holds .git; empty without one.
std::string repository_around(const std::string& path);

// The root of the project that the path lies in: its repository, or else the nearest folder with
// pyproject.toml or setup.py, or else the current folder where the path lies in it; empty where
// nothing tells.
std::string project_of(const std::string& path);

// The folder is the one of the path, or one above it. Both absolute.
bool is_within(const std::string& path, const std::string& folder);

// As an absolute path without "." and "..": the same however it is spelt.
std::string absolute_path(const std::string& path);

// Paths from the roots of repositories, which are looked for once for each folder.
class RepositoryPaths {
 public:
  // "src/train.py"; the path as it is for files of no repository, and for what is no file.
  std::string of(const std::string& path);

 private:
  std::map<std::string, std::string> roots_;  // by folder
};

}  // namespace bench::diagnose
