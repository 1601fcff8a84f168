#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

bool forward_branches(const Program& program, const Wrap& wrap) {
  for (const ClassRef& cls : wrap.classes)
    for (const FunctionRef& method : facts::forward_methods(program, cls))
      for (const NodeId node : method.module->nodes_of(Kind::if_statement))
        if (method.module->tree().contains(method.function->node, node)) return true;
  return false;
}

// model._set_static_graph(), the method behind static_graph=True.
bool is_made_static(const Program& program, const Wrap& wrap) {
  const auto calls = program.calls_named("_set_static_graph");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.receiver() && program.wrap_of(call.receiver(), Wrapper::ddp) == &wrap &&
           !never_both(program, call.ref(), wrap.call.ref()) &&
           runs_wherever(program, call.ref(), diagnose::made_at(program, wrap.call).ref()) &&
           facts::is_reachable(program, call.ref());
  });
}

// DDPStrategy(find_unused_parameters=True, static_graph=True): options that a framework hands on to
// DDP.
void check_options_of_frameworks(const Program& program, Report& report) {
  for (const char* name : {"DDPStrategy", "DDPPlugin", "DistributedDataParallelKwargs"})
    for (const CallRef& options : program.calls_named(name)) {
      const Ref flag = options.keyword("find_unused_parameters");
      if (!flag || !program.is_literal_true(flag) || program.callee(options) ||
          program.class_of_call(options) ||
          !program.is_literal_true(options.keyword("static_graph")) ||
          !facts::is_reachable(program, options.ref()))
        continue;
      report
          .at(flag, Confidence::certain,
              "find_unused_parameters=True is not needed with static_graph=True, which finds "
              "unused parameters once")
          .help = "Remove find_unused_parameters.";
    }
}

}  // namespace

void check_needless_unused_search(const Program& program, Report& report) {
  check_options_of_frameworks(program, report);
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    const Ref flag = wrap.call.keyword("find_unused_parameters");
    if (program.written(flag).kind() != Kind::true_literal) continue;
    if (program.is_literal_true(wrap.call.keyword("static_graph")) ||
        is_made_static(program, wrap)) {
      in_no_trial(
          report.at(flag, Confidence::certain,
                    "find_unused_parameters=True is not needed with static_graph=True, which finds "
                    "unused parameters once"))
          .help = "Remove find_unused_parameters.";
      continue;
    }
    if (forward_branches(program, wrap)) continue;
    Finding& finding = report.at(
        flag, Confidence::check,
        "find_unused_parameters=True walks the autograd graph in every step; the script shows no "
        "branch that would leave parameters unused");
    finding.severity = Severity::info;
    finding.help =
        "Try False: PyTorch raises an error in step 2 if a parameter is unused after all.";
  }
}

void judge_needless_unused_search(const RunEvidence& run, RunReport& report) {
  const bool searched = run.number("find_unused_parameters") == 1;
  if (!searched || run.number("unused_parameters") != 0 || run.number("steps") < 2) return;
  Finding& finding = report.add(Confidence::certain, "find_unused_parameters=True, and in " +
                                                         figure(run.number("steps")) +
                                                         " steps no parameter was unused");
  finding.help =
      "Drop the flag: the graph walk, the all-reduce of the used-parameter map and the "
      "buckets' wrong order go with it.";
}

Price price_needless_unused_search(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const double reduced = broken.number("all_reduces_per_step");
  const double needed = cured.number("all_reduces_per_step");
  const auto rebuilt = [](const RunEvidence& run) {
    const Json* first = run.first("buckets_first_step");
    const Json* last = run.first("buckets");
    return first != nullptr && last != nullptr && *first != *last;
  };
  price.reproduced = reduced > needed && !rebuilt(broken);
  price.gone = rebuilt(cured);
  price.cost = reduced - needed;
  // Wall time is context only: on a busy machine it can even turn the other way round.
  price.unit = "more all-reduces in every step, whose fastest took " +
               figure(broken.number("fastest_step_ms"), 2) + " ms instead of " +
               figure(cured.number("fastest_step_ms"), 2) + " ms on loopback";
  price.seen = "one warning; then " + figure(reduced) + " all-reduces per step instead of " +
               figure(needed) + ", and buckets that are never rebuilt";
  return price;
}

}  // namespace bench::pitfalls
