#include "scenarios/pitfalls/program/argument_for.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

Ref argument_for(const CallRef& site, diagnose::FunctionRef function, std::string_view parameter) {
  const auto& parameters = function.function->parameters;
  const std::size_t first = function.function->owner_class != diagnose::kNoNode ? 1 : 0;
  for (std::size_t i = first; i < parameters.size(); ++i)
    if (parameters[i].name == parameter) return site.argument(i - first, parameter);
  return {};
}

std::vector<Ref> arguments_of(const CallRef& call) {
  std::vector<Ref> out;
  const auto& tree = call.module->tree();
  const diagnose::NodeId list = tree.child(call.call->node, diagnose::Field::arguments);
  if (list == diagnose::kNoNode) return out;
  for (diagnose::NodeId at = tree[list].first_child; at != diagnose::kNoNode;
       at = tree[at].next_sibling) {
    const Ref argument = call.ref().with(at);
    out.push_back(argument.kind() == diagnose::Kind::keyword_argument
                      ? argument.child(diagnose::Field::value)
                      : argument);
  }
  // What **options gives, as far as it can be seen.
  for (const diagnose::Argument& given : call.module->arguments(call.call->node)) {
    const Ref value = call.ref().with(given.value);
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
  return out;
}

}  // namespace bench::pitfalls::facts
