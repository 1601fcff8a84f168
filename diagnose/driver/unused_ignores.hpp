// Comments that silence nothing: of rules that do not exist, or of rules that have nothing to say
// there (any more).
#pragma once

#include "diagnose/driver/ignore_comments.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/options.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/notice.hpp"

#include <vector>

namespace bench::diagnose {

// Notices on the comments of one file. `is_checked`: rules have seen all of it, in a program that
// has all that it brings; otherwise only unknown rules are told.
std::vector<Notice> unused_ignores(const SourceFile& file, bool is_checked, ModuleCache& cache,
                                   const DiagnoseOptions& options, const UsedIgnores& used);

}  // namespace bench::diagnose
