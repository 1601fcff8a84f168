#include "scenarios/pitfalls/files/shared_removals.hpp"

#include "scenarios/pitfalls/files/own_disks.hpp"
#include "scenarios/pitfalls/files/writer_of_logs.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Kind;
using diagnose::RankTest;
using diagnose::Source;

namespace {

// "features.pt", or root + "/features.pt": written out, and the same on every rank.
bool is_one_path(const Program& program, Ref path) {
  if (!path || program.comes_from_rank(path) || is_drawn_by_each(program, path) ||
      facts::contains(facts::lowered(path.text()), "rank") ||
      facts::contains(facts::lowered(path.text()), "tmp"))
    return false;
  // lossfile = "" and later on what a rank has come to: only one value is the same for all.
  if (path.kind() == Kind::identifier && path.module->defs_of(path.text(), false).size() > 1)
    return false;
  const auto& sources = program.sources(path);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const Source& source) {
    return source.how == Source::How::value &&
           (source.ref.kind() == Kind::string || source.ref.kind() == Kind::binary);
  });
}

bool asks_for_the_file(const Program& program, Ref node) {
  return program.under(node, [](Ref condition, bool holds) {
    return holds && (facts::contains(condition.text(), "exists") ||
                     facts::contains(condition.text(), "isfile"));
  });
}

// Nothing keeps the other ranks from removing it at the same time.
bool all_ranks_remove(const Program& program, Ref node) {
  return node.module->tree().ancestor(node.node, Kind::try_statement) == diagnose::kNoNode &&
         program.guarded_by_rank(node) == RankTest::none &&
         !facts::rank_goes_first(program, node) && !facts::only_before_ranks(program, node) &&
         !facts::only_without_distribution(program, node) && !facts::in_dataset(program, node) &&
         !is_left_to_the_writer(program, node) && facts::is_reachable(program, node);
}

// shutil.rmtree(out), also where each rank asks first whether it is there: all of them find it.
void check_removals_of_trees(const Program& program, Report& report) {
  for (const CallRef& removal : program.calls_named("rmtree")) {
    const Ref node = removal.ref();
    const Ref path = removal.argument(0, "path");
    if (removal.call->path != "shutil.rmtree" || !path || removal.argument(1, "ignore_errors") ||
        program.comes_from_rank(path) || is_drawn_by_each(program, path) ||
        facts::contains(facts::lowered(path.text()), "rank") || !all_ranks_remove(program, node))
      continue;
    report
        .at(node, Confidence::likely,
            "every rank removes the directory: they take files away from each other, and what one "
            "has made anew the next one removes")
        .help = "Remove it on rank 0, and let the others wait at a barrier.";
  }
}

}  // namespace

void check_shared_removals(const Program& program, Report& report) {
  check_removals_of_trees(program, report);
  for (const char* name : {"remove", "unlink"})
    for (const CallRef& removal : program.calls_named(name)) {
      const std::string_view function = removal.call->path;
      if (function != "os.remove" && function != "os.unlink") continue;
      const Ref node = removal.ref();
      if (!is_one_path(program, removal.positional(0)) || asks_for_the_file(program, node) ||
          !all_ranks_remove(program, node))
        continue;
      report
          .at(node, Confidence::likely,
              "every rank removes the file: the second one raises FileNotFoundError, and ranks "
              "that have yet to read it find nothing")
          .help = "Call dist.barrier(), then remove it on rank 0.";
    }
}

}  // namespace bench::pitfalls
