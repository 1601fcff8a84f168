#include "scenarios/pitfalls/metrics/forgotten_meters.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// The function around the loop, or the one that this is nested in.
FunctionRef outermost_function(const Program& program, Ref node) {
  FunctionRef function = program.enclosing_function(node);
  while (function && function.function->owner_class == diagnose::kNoNode) {
    const FunctionRef outer =
        program.enclosing_function({function.module, function.function->node});
    if (!outer || outer == function) break;
    function = outer;
  }
  return function;
}

// meter.all_reduce() of a class of this program, for each such method.
std::vector<FunctionRef> reducing_methods(const Program& program,
                                          const std::vector<Reduction>& reductions) {
  std::vector<FunctionRef> out;
  for (const Reduction& reduction : reductions)
    if (const FunctionRef method = program.enclosing_function(reduction.call);
        method && method.function->owner_class != diagnose::kNoNode)
      out.push_back(method);
  return out;
}

}  // namespace

// top5.all_reduce() and return top1.avg: one of two meters is reduced, and the other decides.
void check_forgotten_meters(const Program& program, Ref loop,
                            const std::vector<Reduction>& reductions, Report& report) {
  const FunctionRef evaluation = outermost_function(program, loop);
  if (!evaluation) return;
  const Ref body{evaluation.module, evaluation.function->body};
  const auto calls = facts::calls_in(body);
  const auto is_meter = [&](const CallRef& call, FunctionRef method) {
    return call.receiver().kind() == Kind::identifier &&
           program.class_of(call.receiver()) ==
               program.enclosing_class({method.module, method.function->body});
  };
  for (const FunctionRef& method : reducing_methods(program, reductions)) {
    std::vector<std::string_view> reduced;
    for (const CallRef& call : calls)
      if (call.call->name == method.function->name && is_meter(call, method))
        reduced.push_back(call.receiver().text());
    if (reduced.empty()) continue;
    const auto& tree = body.module->tree();
    for (const CallRef& call : calls) {
      const std::string name(call.receiver() ? call.receiver().text() : std::string_view{});
      if (call.call->name != "update" || !is_meter(call, method) ||
          std::find(reduced.begin(), reduced.end(), name) != reduced.end())
        continue;
      for (NodeId at = body.node; at < tree[body.node].last; ++at) {
        if (tree[at].kind != Kind::return_statement || !facts::contains(tree.text(at), name + "."))
          continue;
        as_in_trial(
            report.at(body.with(at), Confidence::likely,
                      "'" + name + "' is that of one rank's part of the data: '" +
                          std::string(reduced.front()) + "' beside it is reduced and it is not"),
            "best-checkpoint")
            .help = "Call " + name + "." + std::string(method.function->name) + "() too.";
        return;
      }
    }
  }
}

}  // namespace bench::pitfalls
