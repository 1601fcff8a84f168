#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;

void check_timeout_versus_rank0_work(const Program& program, Report& report) {
  constexpr std::int64_t kLongHours = 2;
  for (const CallRef& init : program.calls(Api::init_process_group)) {
    const CallRef delta = program.made_by(init.keyword("timeout"));
    if (!delta) continue;
    const auto hours = program.integer(delta.keyword("hours")).value_or(0) +
                       24 * program.integer(delta.keyword("days")).value_or(0) +
                       program.integer(delta.keyword("seconds")).value_or(0) / 3600 +
                       program.integer(delta.keyword("minutes")).value_or(0) / 60;
    if (hours <= kLongHours) continue;
    Finding& finding =
        report.at(delta.ref(), Confidence::check,
                  "a time-out of " + std::to_string(hours) + " hours hides real hangs for as long");
    finding.severity = Severity::info;
    finding.help =
        "Keep it short, and give long phases on one rank a group or a barrier of their own.";
  }
  for (const std::string_view name :
       {"download", "preprocess", "tokenize", "evaluate", "validate", "build_vocab"})
    for (const CallRef& work : program.calls_named(name)) {
      if (!program.rank_guard(work.ref()) ||
          program.guarded_by_rank(work.ref()) != RankTest::main_only)
        continue;
      bool limited = false;
      for (const CallRef& init : program.calls(Api::init_process_group))
        limited = limited || init.keyword("timeout");
      bool waited = false;
      for (const CallRef& barrier : program.calls(Api::barrier))
        waited = waited || (barrier.module == work.module &&
                            program.enclosing_function(barrier.ref()) ==
                                program.enclosing_function(work.ref()) &&
                            barrier.call->node > work.call->node);
      if (!waited || limited) continue;
      Finding& finding = report.at(work.ref(), Confidence::check,
                                   "the other ranks wait in a barrier while rank 0 works: NCCL "
                                   "ends the job after 10 minutes");
      finding.severity = Severity::info;
      finding.help = "Do it before init_process_group, or pass a longer timeout.";
    }
}

}  // namespace bench::pitfalls
