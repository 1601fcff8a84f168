#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Module;
using diagnose::RankTest;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// A matching collective in the other branch, or the barrier pair of "rank 0 first".
bool is_matched(const Program& program, const CallRef& call) {
  const Ref guard = program.rank_guard(call.ref());
  const auto others = call.call->api == Api::none ? program.calls_named(call.call->name)
                                                  : program.calls(call.call->api);
  for (const CallRef& other : others) {
    if (other.call == call.call) continue;
    if (facts::exclusive(call.ref(), other.ref())) return true;
    if (call.call->api != Api::barrier && call.call->api != Api::none &&
        program.enclosing_function(other.ref()) != program.enclosing_function(call.ref()))
      continue;
    const RankTest mine = program.guarded_by_rank(call.ref());
    const RankTest theirs = program.guarded_by_rank(other.ref());
    if (theirs != RankTest::none && theirs != mine) return true;
  }
  return !guard && call.call->api == Api::broadcast && !program.enclosing_function(call.ref());
}

bool is_accelerate_collective(std::string_view name) {
  return name == "wait_for_everyone" || name == "gather_for_metrics" || name == "save_state";
}

}  // namespace

void check_rank_conditional_collective(const Program& program, Report& report) {
  const auto flag = [&](const CallRef& call, const std::string& what) {
    if (program.guarded_by_rank(call.ref()) == RankTest::none || is_matched(program, call)) return;
    if (call.keyword("group") || !facts::is_reachable(program, call.ref())) return;
    const bool direct = static_cast<bool>(program.rank_guard(call.ref()));
    report
        .at(call.ref(), direct ? Confidence::certain : Confidence::likely,
            what +
                " runs on some ranks only: those that call it wait for the others until the "
                "time-out")
        .help = "Call it on every rank; keep only input and output under the test of the rank.";
  };
  for (const Api api : {Api::barrier, Api::all_reduce, Api::all_gather, Api::gather, Api::broadcast,
                        Api::reduce, Api::reduce_scatter, Api::scatter, Api::all_to_all})
    for (const CallRef& call : program.calls(api)) flag(call, std::string(call.call->name));
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::ddp)
      flag(wrap.call, "building DistributedDataParallel (a collective)");
  if (program.imports("accelerate"))
    for (const Module* module : program.modules())
      for (const auto& call : module->calls())
        if (is_accelerate_collective(call.name)) flag({module, &call}, std::string(call.name));
  if (program.imports("pytorch_lightning") || program.imports("lightning"))
    for (const CallRef& call : program.calls_named("save_checkpoint"))
      if (call.receiver() && facts::contains(call.receiver().text(), "trainer"))
        flag(call, "save_checkpoint");
}

}  // namespace bench::pitfalls
