#include "diagnose/driver/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace bench::diagnose {
namespace {

bool by_name(const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; }

// Some file systems do not tell the type with the name.
void look_up_type(DIR* directory, DirectoryEntry& entry) {
  struct stat status {};
  if (::fstatat(::dirfd(directory), entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  entry.is_directory = S_ISDIR(status.st_mode);
  entry.is_link = S_ISLNK(status.st_mode);
}

}  // namespace

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string parent_of(const std::string& directory) {
  if (directory.empty()) return {};
  const std::size_t slash = directory.rfind('/', directory.size() - 2);
  return slash == std::string::npos ? std::string() : directory.substr(0, slash + 1);
}

std::string prefix_of(const std::string& tree) {
  const std::string folder = std::filesystem::path(tree).lexically_normal().string();
  if (folder == "." || folder == "./" || folder.empty()) return {};
  return folder.ends_with('/') ? folder : folder + '/';
}

bool is_project_root(const std::vector<DirectoryEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return entry.name == ".git" || entry.name == "pyproject.toml" || entry.name == "setup.py";
  });
}

std::vector<DirectoryEntry> list_directory(const std::string& directory) {
  std::vector<DirectoryEntry> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(
      ::opendir(directory.empty() ? "." : directory.c_str()), ::closedir);
  if (!open) return out;
  while (const dirent* each = ::readdir(open.get())) {
    DirectoryEntry entry;
    entry.name = each->d_name;
    if (entry.name == "." || entry.name == "..") continue;
    if (out.size() >= kMaxEntries) break;
    entry.is_directory = each->d_type == DT_DIR;
    entry.is_link = each->d_type == DT_LNK;
    if (each->d_type == DT_UNKNOWN) look_up_type(open.get(), entry);
    out.push_back(std::move(entry));
  }
  std::sort(out.begin(), out.end(), by_name);
  return out;
}

std::vector<DirectoryEntry> list_texts(const std::map<std::string, std::string>& files,
                                       const std::string& directory) {
  std::vector<DirectoryEntry> out;
  for (auto at = files.lower_bound(directory); at != files.end(); ++at) {
    if (!at->first.starts_with(directory)) break;
    const std::string rest = at->first.substr(directory.size());
    const std::size_t slash = rest.find('/');
    std::string name = rest.substr(0, slash);
    if (name.empty() || (!out.empty() && out.back().name == name)) continue;
    out.push_back({std::move(name), slash != std::string::npos, false});
  }
  std::sort(out.begin(), out.end(), by_name);
  return out;
}

}  // namespace bench::diagnose
