// Comments that silence nothing: of rules that do not exist, or of rules that have nothing to say
// there (any more).
#pragma once

#include "diagnose/driver/ignore_comments.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/options.hpp"
#include "diagnose/driver/seen_files.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/notice.hpp"

#include <vector>

namespace bench::diagnose {

// Notices on the comments of one file, as far as rules know it; unknown rules are told in any case.
std::vector<Notice> unused_ignores(const SourceFile& file, Seen seen, ModuleCache& cache,
                                   const DiagnoseOptions& options, const UsedIgnores& used);

}  // namespace bench::diagnose
