// Which files are checked: those that the paths of the command line name or lead to, without what
// is excluded, or the text that stands in place of one.
#pragma once

#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/options.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/notice.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

struct FoundSources {
  std::vector<SourceFile> files;
  std::vector<std::string> unreadable;  // directories below those that were given
  std::vector<Notice> emptied;          // of directories that hold nothing but what is excluded
};

// Throws UsageError for a path that does not exist or cannot be read. Of a directory also what may
// hold launch lines (a README, a Makefile), as FileType::other. A file that several of the paths
// lead to stands once.
FoundSources find_sources(const DiagnoseOptions& options);

// How files and directories are read: from the disk, and the text that was given in place of one.
Reader reader_of(const DiagnoseOptions& options);
Lister lister_of(const DiagnoseOptions& options);

}  // namespace bench::diagnose
