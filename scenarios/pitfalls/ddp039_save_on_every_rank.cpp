#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;
using diagnose::Source;

namespace {

bool is_file_of_its_own(const Program& program, const CallRef& save) {
  const Ref path = save.argument(1, "f");
  if (!path) return true;
  if (program.mentions_rank(path)) return true;
  const std::string text = facts::lowered(path.text());
  if (facts::contains(text, "rank") || facts::contains(text, "buffer") ||
      facts::contains(text, "bytesio"))
    return true;
  for (const Source& source : program.sources(path)) {
    const CallRef call = program.as_call(source.ref);
    if (call && (call.call->name == "BytesIO" || call.call->name == "NamedTemporaryFile"))
      return true;
  }
  return false;
}

}  // namespace

void check_save_on_every_rank(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  for (const CallRef& save : program.calls(Api::torch_save)) {
    if (program.guarded_by_rank(save.ref()) != RankTest::none || is_file_of_its_own(program, save))
      continue;
    if (facts::rank_goes_first(program, save.ref())) continue;
    if (facts::only_without_distribution(program, save.ref()) ||
        !facts::is_reachable(program, save.ref()))
      continue;
    Finding& finding = report.at(
        save.ref(), Confidence::certain,
        "every rank writes the same file: the last one wins, and a reader may find a torn file");
    finding.help = "Save on one rank: if dist.get_rank() == 0.";
    const std::string condition = facts::main_rank_condition(program, save.ref());
    if (!condition.empty()) guard_statement(save.ref(), condition, "Save on rank 0 only", finding);
  }
}

}  // namespace bench::pitfalls
