#include "scenarios/pitfalls/metrics/idle_copies.hpp"

#include "scenarios/pitfalls/metrics/own_copy.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// The last value that the variable has above the node, in its function.
Ref value_above(FunctionRef function, std::string_view name, NodeId node) {
  Ref value;
  for (const Assigned& each : assignments_in({function.module, function.function->body}))
    if (each.name == name && each.target < node && each.value) value = each.value;
  return value;
}

// Some line reads the variable: not the collective, nor what gives it a value or divides it.
bool is_read(FunctionRef function, std::string_view name, Ref collective) {
  const auto& tree = function.module->tree();
  for (NodeId at = function.function->body; at < tree[function.function->body].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree.text(at) != name) continue;
    const Kind parent = tree[tree[at].parent].kind;
    const bool is_target = tree[at].field == Field::left &&
                           (parent == Kind::assignment || parent == Kind::augmented_assignment);
    const bool is_option = parent == Kind::keyword_argument && tree[at].field == Field::name;
    if (!is_target && !is_option && !tree.contains(collective.node, at)) return true;
  }
  return false;
}

bool tells_figure(const CallRef& call) {
  return says_any(call.call->name, {"log", "print", "append", "update", "add_scalar", "write",
                                    "info", "record", "set_postfix"});
}

// Where the figure goes below the collective: out of the function, or into a log.
Ref use_below(FunctionRef function, std::string_view name, Ref collective) {
  const auto& tree = function.module->tree();
  for (NodeId at = tree[collective.node].last; at < tree[function.function->body].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree.text(at) != name) continue;
    if (const NodeId out = tree.ancestor(at, Kind::return_statement);
        out != kNoNode && tree.contains(function.function->body, out))
      return collective.with(out);
    for (NodeId call = tree.ancestor(at, Kind::call);
         call != kNoNode && call > function.function->body; call = tree.ancestor(call, Kind::call))
      for (const CallRef& each : facts::calls_in(collective.with(call)))
        if (each.call->node == call && tells_figure(each)) return each.ref();
  }
  return {};
}

}  // namespace

void check_idle_copies(const Program& program, const std::vector<Reduction>& reductions,
                       Report& report) {
  for (const Reduction& reduction : reductions) {
    const CallRef call = program.as_call(reduction.call);
    const FunctionRef function = program.enclosing_function(reduction.call);
    if (!function || (call.call->api != Api::all_reduce && call.call->api != Api::reduce) ||
        reduction.value.kind() != Kind::identifier)
      continue;
    const std::string_view reduced = reduction.value.text();
    const Ref made = value_above(function, reduced, reduction.call.node);
    const std::string own = made ? figure_copied(made) : std::string();
    if (own.empty() || own == reduced || is_read(function, reduced, reduction.call)) continue;
    const Ref use = use_below(function, own, reduction.call);
    if (!use) continue;
    as_in_trial(report.at(use, Confidence::likely,
                          "'" + own + "' is that of one rank's part of the data: what it is " +
                              "reduced into, '" + std::string(reduced) + "', is never looked at"),
                "best-checkpoint")
        .help = "Use '" + std::string(reduced) + "' from here on.";
  }
}

}  // namespace bench::pitfalls
