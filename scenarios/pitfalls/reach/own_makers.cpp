#include "scenarios/pitfalls/reach/own_makers.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

std::vector<CallRef> made_by_itself(const Program& program, diagnose::ClassRef cls) {
  std::vector<CallRef> out;
  for (const CallRef& made : program.calls_named("cls"))
    if (!made.receiver() && program.enclosing_class(made.ref()) == cls) out.push_back(made);
  return out;
}

bool needs_no_object(const FunctionRef& function) {
  const auto& tree = function.module->tree();
  const NodeId around = tree[function.function->node].parent;
  if (around == kNoNode || tree[around].kind != Kind::decorated) return false;
  for (NodeId at = tree[around].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::decorator && (facts::contains(tree.text(at), "classmethod") ||
                                             facts::contains(tree.text(at), "staticmethod")))
      return true;
  return false;
}

std::vector<CallRef> sites_of(const Program& program, const FunctionRef& function) {
  std::vector<CallRef> out = program.call_sites(function);
  const diagnose::ClassRef owner =
      program.enclosing_class({function.module, function.function->body});
  if (!out.empty() || !owner || !needs_no_object(function)) return out;
  for (const CallRef& call : program.calls_named(function.function->name)) {
    if (!call.receiver()) continue;
    const auto& sources = program.sources(call.receiver());
    if (std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
          return source.ref.module == owner.module && source.ref.node == owner.cls->node;
        }))
      out.push_back(call);
  }
  return out;
}

}  // namespace bench::pitfalls
