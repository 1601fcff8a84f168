#include "scenarios/pitfalls/reach/other_names.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::SyntaxTree;

namespace {

struct OtherName {
  std::string_view name;
  bool is_bound = false;  // to an object, which is its first argument
};

OtherName given_at(const Program& program, Ref place) {
  const SyntaxTree& tree = place.module->tree();
  NodeId value = place.node;
  OtherName out;
  const NodeId list = tree[value].parent;
  if (list != kNoNode && tree[list].kind == Kind::argument_list) {
    const CallRef call = program.as_call(place.with(tree[list].parent));
    if (!call || call.call->path != "types.MethodType" || call.positional(0) != place) return {};
    out.is_bound = true;
    value = call.call->node;
  }
  const NodeId assignment = tree[value].parent;
  if (assignment == kNoNode || tree[assignment].kind != Kind::assignment ||
      tree.child(assignment, Field::right) != value)
    return {};
  const Ref target = place.with(tree.child(assignment, Field::left));
  const bool is_attribute = target.kind() == Kind::attribute;
  if (!is_attribute && target.kind() != Kind::identifier) return {};
  out.name = is_attribute ? target.child(Field::attribute).text() : target.text();
  return out;
}

// The name is read at the node, to be called or handed on: no definition, no import, no keyword.
bool is_read(const SyntaxTree& tree, NodeId id) {
  const NodeId at = tree[id].field == Field::attribute ? tree[id].parent : id;
  return tree[at].field != Field::name && tree[at].field != Field::left &&
         tree[at].field != Field::function && tree.ancestor(at, Kind::import_from) == kNoNode &&
         tree.ancestor(at, Kind::import_statement) == kNoNode;
}

// The name stands for the function somewhere else than in a call, and than where the function
// itself is handed on, whose name it may share.
bool is_handed_on(const Program& program, std::string_view name, FunctionRef function) {
  const auto known = program.handed_on(function);
  for (const diagnose::Module* module : program.modules()) {
    const SyntaxTree& tree = module->tree();
    for (NodeId id = 0; id < tree.size(); ++id)
      if (tree[id].kind == Kind::identifier && tree.text(id) == name && is_read(tree, id) &&
          std::find(known.begin(), known.end(), Ref{module, id}) == known.end())
        return true;
  }
  return false;
}

bool is_left_off(const Program& program, FunctionRef function, const Switches& switches,
                 const CallRef& call, bool is_bound) {
  // The object takes the first place: what is given by place stands one further on.
  if (is_bound && call.positional(1)) return false;
  Switches outer;
  return is_switched_off_by(program, function, switches, call, outer);
}

}  // namespace

bool is_switched_off_by_other_name(const Program& program, FunctionRef function,
                                   const Switches& switches, Ref place) {
  if (switches.empty() || place.module == &program.root()) return false;
  const OtherName other = given_at(program, place);
  if (other.name.empty() || is_handed_on(program, other.name, function)) return false;
  const auto calls = program.calls_named(other.name);
  return std::all_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return is_left_off(program, function, switches, call, other.is_bound);
  });
}

}  // namespace bench::pitfalls::facts
