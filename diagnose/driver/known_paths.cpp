#include "diagnose/driver/known_paths.hpp"

#include <filesystem>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

std::optional<KnownPath> ask_disk(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (error || !fs::exists(status)) return std::nullopt;
  return KnownPath{fs::is_directory(status), fs::is_symlink(status)};
}

}  // namespace

// Nothing is looked up in a directory above for the current one, the root, and what dots lead to. A
// directory that nobody may list can hold directories that one may enter.
bool KnownPaths::is_absent(const std::string& directory) {
  const std::string above = parent_of(directory);
  if (above.size() == directory.size()) return false;
  const std::string name = directory.substr(above.size(), directory.size() - above.size() - 1);
  if (name.empty() || name == "." || name == "..") return false;
  const Listing& listing = listing_of(above);
  return listing.is_whole && !listing.entries.contains(name);
}

const KnownPaths::Listing& KnownPaths::listing_of(const std::string& directory) {
  if (const auto known = listings_.find(directory); known != listings_.end()) return known->second;
  // Most directories that an import may mean are not there: they are not remembered one by one.
  static const Listing kNothing;
  if (is_absent(directory)) return kNothing;
  Listing made;
  for (DirectoryEntry& each : list_(directory))
    made.entries.emplace(std::move(each.name), KnownPath{each.is_directory, each.is_link});
  std::error_code error;
  made.is_whole =
      made.entries.size() < kMaxEntries &&
      (!made.entries.empty() || !fs::is_directory(directory.empty() ? "." : directory, error));
  return listings_.emplace(directory, std::move(made)).first->second;
}

std::optional<KnownPath> KnownPaths::find(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const std::string directory = directory_of(path);
  const Listing& listing = listing_of(directory);
  const auto found = listing.entries.find(path.substr(directory.size()));
  if (found != listing.entries.end()) return found->second;
  return listing.is_whole ? std::nullopt : ask_disk(path);
}

}  // namespace bench::diagnose
