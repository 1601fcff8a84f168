// bench trace: the steps of a stored run as one Chrome trace, for ui.perfetto.dev.
#include "bench/cli/commands.hpp"
#include "bench/cli/flag_parser.hpp"
#include "bench/core/error.hpp"
#include "report/run_files.hpp"

#include "profiling/chrome_trace.hpp"

#include <cstdio>

namespace bench::cli {
namespace {

constexpr Flag kFlags[] = {
    {"--out", "FILE.json", "where to write; compressed when it ends in .gz", "flags", "trace.json"},
    {"--case", "TEXT", "the cases whose names hold TEXT, instead of the pair of the headline",
     "flags", "strategy:distributed"},
};

}  // namespace

int trace_command(const Arguments& arguments) {
  const Typed typed = parse_flags(arguments, kFlags, "bench trace");
  if (typed.words.size() != 1) {
    throw UsageError("bench trace: expected one run: a directory that holds a results.json");
  }
  const auto steps = report::load_steps(typed.words[0], typed.value("--case").value_or(""));
  const std::string json = profiling::chrome_trace_json(steps);
  const auto out = typed.value("--out");
  if (!out) {
    std::fputs(json.c_str(), stdout);
  } else {
    report::write_file_atomically(*out, out->ends_with(".gz") ? report::gzip(json) : json);
  }
  return kExitClean;
}

}  // namespace bench::cli
