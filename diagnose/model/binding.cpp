#include "diagnose/model/binding.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

bool is_decorated(const FunctionRef& function) {
  const auto& tree = function.module->tree();
  const auto under_decorator = [&](NodeId node) {
    const NodeId parent = node == kNoNode ? kNoNode : tree[node].parent;
    return parent != kNoNode && tree[parent].kind == Kind::decorated;
  };
  return under_decorator(function.function->node) ||
         under_decorator(function.function->owner_class);
}

// The object, or the class, stands in front of the method's other arguments: model.step(x), C(x).
bool is_bound(const CallRef& call, const FunctionRef& function) {
  if (function.function->owner_class == kNoNode) return false;
  const Class* owner = function.module->class_at(function.function->owner_class);
  const Ref object = call.receiver();
  // C.step(object, x) hands over the object itself.
  return !(object && owner != nullptr && object.text() == owner->name);
}

bool takes_any(const Function& function, char splat) {
  return std::any_of(function.parameters.begin(), function.parameters.end(),
                     [&](const Parameter& parameter) { return parameter.splat == splat; });
}

bool takes_keyword(const Function& function, std::string_view name) {
  return std::any_of(function.parameters.begin(), function.parameters.end(),
                     [&](const Parameter& parameter) { return parameter.name == name; });
}

bool gives_keyword(const SyntaxTree& tree, NodeId list, std::string_view name) {
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::keyword_argument && tree.text(tree.child(at, Field::name)) == name)
      return true;
  return false;
}

// The call goes by the name of the function or class itself: what functools.partial() made of it
// may have other arguments.
bool is_called_by_name(const CallRef& call, const FunctionRef& function) {
  const NodeId owner = function.function->owner_class;
  const Class* cls = owner == kNoNode ? nullptr : function.module->class_at(owner);
  return call.call->name == function.function->name ||
         (cls != nullptr && call.call->name == cls->name);
}

// A parameter without a default is given nothing.
bool leaves_one_out(const CallRef& call, const FunctionRef& function, NodeId list,
                    std::size_t positional) {
  std::size_t place = 0;
  for (const Parameter& parameter : function.function->parameters) {
    if (parameter.splat != 0) {
      positional = 0;  // what follows *args is given by keyword
      continue;
    }
    if (place++ < positional || parameter.default_value != kNoNode) continue;
    if (!gives_keyword(call.module->tree(), list, parameter.name)) return true;
  }
  return false;
}

}  // namespace

bool can_bind(const CallRef& call, const FunctionRef& function) {
  if (!call || !function || call.has_splat() || is_decorated(function)) return true;
  const auto& tree = call.module->tree();
  const NodeId list = tree.child(call.call->node, Field::arguments);
  if (list == kNoNode || tree[list].kind != Kind::argument_list) return true;
  std::size_t positional = is_bound(call, function) ? 1 : 0;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::keyword_argument) {
      ++positional;
    } else if (!takes_any(*function.function, 'd') &&
               !takes_keyword(*function.function, tree.text(tree.child(at, Field::name)))) {
      return false;
    }
  }
  if (is_called_by_name(call, function) && leaves_one_out(call, function, list, positional))
    return false;
  return takes_any(*function.function, '*') || positional <= function.function->parameters.size();
}

}  // namespace bench::diagnose
