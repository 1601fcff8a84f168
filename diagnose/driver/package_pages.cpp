#include "diagnose/driver/package_pages.hpp"

#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/project_requirements.hpp"
#include "diagnose/launch/launch_documents.hpp"

#include <algorithm>

namespace bench::diagnose {

// A folder with requirements of its own is another project, which was put in here.
bool PackagePages::is_page_of_package(const SourceFile& file) const {
  if (launch_document(file.path) != LaunchDocument::readme) return false;
  const auto entries = list_(directory_of(file.path));
  const auto is_any = [&](const auto& test) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const DirectoryEntry& entry) { return test(entry.name); });
  };
  return is_any([](const std::string& name) { return name == "__init__.py"; }) &&
         !is_any([](const std::string& name) { return is_requirement_file(name); });
}

void PackagePages::note_files(const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) {
    if (file.type != FileType::other || !is_page_of_package(file)) continue;
    if (const auto text = cache_.read(file.path)) {
      NewestVersions& pinned = pinned_[file.top];
      pinned = merged(pinned, read_page(*text));
    }
  }
}

bool PackagePages::asks_for_lightning(const std::string& directory, const std::string& top) const {
  const auto entries = list_(directory);
  return std::any_of(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) {
    const std::string path = directory + entry.name;
    if (entry.is_directory || !is_requirement_file(entry.name) ||
        (entry.is_link && links_out_of(path, top)))
      return false;
    const auto text = cache_.read(path);
    return text && text->find("lightning") != std::string::npos;
  });
}

std::int16_t PackagePages::lightning_for(const std::vector<std::string>& directories,
                                         const std::string& top) const {
  const auto pinned = pinned_.find(top);
  if (pinned == pinned_.end() || pinned->second.lightning == kAnyVersion) return kAnyVersion;
  const bool is_asked =
      std::any_of(directories.begin(), directories.end(),
                  [&](const std::string& directory) { return asks_for_lightning(directory, top); });
  return is_asked ? kAnyVersion : pinned->second.lightning;
}

}  // namespace bench::diagnose
