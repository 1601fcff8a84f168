#include "diagnose/command/fixes.hpp"

#include "bench/core/error.hpp"
#include "diagnose/command/changed_texts.hpp"
#include "diagnose/command/verdict.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/driver/source_search.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

namespace bench::diagnose {
namespace {

constexpr int kRounds = 8;

// A fix changes what the user named, or what lies in a folder that was named; a module that a named
// script imports is left as it is. The number of fixes taken away.
std::size_t keep_fixes_of_given_files(std::vector<Finding>& findings,
                                      const std::set<std::string>& given) {
  std::size_t left = 0;
  for (Finding& finding : findings) {
    if (!finding.fix) continue;
    const auto& edits = finding.fix->edits;
    if (std::all_of(edits.begin(), edits.end(),
                    [&](const Edit& edit) { return given.contains(edit.file); }))
      continue;
    finding.fix.reset();
    ++left;
  }
  return left;
}

struct Fixed {
  DiagnoseResult result;      // of the last round
  std::size_t applied = 0;    // fixes
  std::size_t elsewhere = 0;  // fixes left out, since they are of files that were not given
};

Fixed fix_texts(const DiagnoseOptions& options, ChangedTexts& texts) {
  std::set<std::string> given;
  for (const SourceFile& file : find_sources(options).files) given.insert(file.path);
  Fixed out;
  for (int round = 0; round < kRounds; ++round) {
    out.result = diagnose(options, [&](const std::string& path) { return texts.read(path); });
    out.elsewhere = keep_fixes_of_given_files(out.result.findings, given);
    for (const Finding& finding : out.result.findings)
      if (finding.fix)
        for (const Edit& edit : finding.fix->edits) texts.remember(edit.file);
    std::size_t now = 0;
    const auto changed = apply_fixes(out.result.findings, texts.current(), now);
    if (now == 0) break;
    out.applied += now;
    for (const auto& [file, text] : changed) texts.set(file, text);
  }
  return out;
}

}  // namespace

int run_fixes(const Flags& flags, ResultOutput& output) {
  ChangedTexts texts(reader_of(flags.options));
  const Fixed fixed = fix_texts(flags.options, texts);
  texts.hand_over(flags, output);
  const bool refused = print_notices(fixed.result.notices, flags.options);
  std::fprintf(stderr, "%s %s; %s left\n", counted(fixed.applied, "fix").c_str(),
               flags.diff ? "shown" : "applied",
               counted(fixed.result.findings.size(), "finding").c_str());
  if (fixed.elsewhere > 0)
    std::fprintf(stderr, "%s in files that were not given; name them or their folder\n",
                 counted(fixed.elsewhere, "fix").c_str());
  if (refused) return kExitUsage;
  return flags.diff && fixed.applied > 0 ? kExitFindings : exit_code_of(fixed.result.findings);
}

}  // namespace bench::diagnose
