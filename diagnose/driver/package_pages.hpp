// Lightning as the READMEs within a project's packages pin it: trainer/README.md beside
// trainer/__init__.py. They speak for the whole project where nothing else in it names a version.
#pragma once

#include "diagnose/config/requirements.hpp"
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/source_files.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench::diagnose {

class PackagePages {
 public:
  PackagePages(const ModuleCache& cache, Lister list) : cache_(cache), list_(std::move(list)) {}

  // Before any question; the files stay the same from then on.
  void note_files(const std::vector<SourceFile>& files);

  // For a file in the tree `top`, and the directories above it; kAnyVersion where a requirement
  // file of these names Lightning itself, of whatever version.
  std::int16_t lightning_for(const std::vector<std::string>& directories,
                             const std::string& top) const;

 private:
  bool is_page_of_package(const SourceFile& file) const;
  bool asks_for_lightning(const std::string& directory, const std::string& top) const;

  const ModuleCache& cache_;
  Lister list_;
  std::map<std::string, NewestVersions> pinned_;  // by the tree
};

}  // namespace bench::diagnose
