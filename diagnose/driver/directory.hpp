// What one directory holds, read once: names, and which of them are directories or links.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench::diagnose {

// A folder with more entries is a store of data: the others are not listed.
inline constexpr std::size_t kMaxEntries = 20'000;

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  bool is_link = false;  // of either kind; what it leads to may lie elsewhere
};

// Entries of a directory by name, sorted; none where it cannot be read. Tests list files in memory.
// A directory is written with a slash at its end, the current one as an empty text.
using Lister = std::function<std::vector<DirectoryEntry>(const std::string& directory)>;

// "tools/" of "tools/train.py"; empty for a file of the current directory.
std::string directory_of(const std::string& path);

// "a/" of "a/b/"; empty for a directory of the current one, and the root for the root.
std::string parent_of(const std::string& directory);

// A tree that was given as the beginning of the paths in it: "src/", or nothing for ".".
std::string prefix_of(const std::string& tree);

// The root of a project, by what it holds: .git, pyproject.toml or setup.py.
bool is_project_root(const std::vector<DirectoryEntry>& entries);

std::vector<DirectoryEntry> list_directory(const std::string& directory);
std::vector<DirectoryEntry> list_texts(const std::map<std::string, std::string>& files,
                                       const std::string& directory);

}  // namespace bench::diagnose
