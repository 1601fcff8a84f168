#include "scenarios/pitfalls/wrappers/bare_states.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <string_view>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Wrap;

namespace {

// The key that a checkpoint of the program keeps model.module.state_dict() under, in a dictionary
// that holds more than the weights: {"epoch": epoch, "model": model.module.state_dict()}.
struct BareState {
  std::string_view key;
  Ref dictionary;
};

std::string_view unquoted_key(Ref key) {
  const std::string_view text = key.text();
  return key.kind() == Kind::string && text.size() > 2 ? text.substr(1, text.size() - 2) : "";
}

std::vector<BareState> bare_states(const Program& program) {
  std::vector<BareState> out;
  for (const CallRef& state : program.calls_named("state_dict")) {
    const Ref pair = state.ref().with(state.module->tree()[state.call->node].parent);
    if (pair.kind() != Kind::pair || !state.receiver() ||
        !state.receiver().text().ends_with(".module") ||
        program.wrap_of(state.receiver().child(Field::object)) == nullptr)
      continue;
    out.push_back(
        {unquoted_key(pair.child(Field::key)), pair.with(pair.module->tree()[pair.node].parent)});
  }
  return out;
}

bool is_item(Ref node, std::string_view container) {
  return node.kind() == Kind::subscript && node.child(Field::value).text() == container;
}

std::string_view key_of(Ref item) { return unquoted_key(item.child(Field::subscript)); }

// The checkpoint that the state is an item of gives back other entries of that dictionary too:
// start = checkpoint["epoch"].
bool restores_the_rest(Ref state, const BareState& saved) {
  const auto& tree = state.module->tree();
  const std::string_view container = state.child(Field::value).text();
  const auto& pairs = saved.dictionary.module->tree();
  for (NodeId at = 0; at < tree.size(); ++at) {
    if (!is_item(state.with(at), container) || key_of(state.with(at)) == saved.key) continue;
    for (NodeId pair = pairs[saved.dictionary.node].first_child; pair != diagnose::kNoNode;
         pair = pairs[pair].next_sibling)
      if (unquoted_key(saved.dictionary.with(pairs.child(pair, Field::key))) ==
          key_of(state.with(at)))
        return true;
  }
  return false;
}

// All that is saved under the key of the restored state is the bare model's.
bool is_saved_bare(const Program& program, Ref state) {
  if (state.kind() != Kind::subscript || key_of(state).empty()) return false;
  bool found = false;
  for (const CallRef& other : program.calls_named("state_dict")) {
    const Ref pair = other.ref().with(other.module->tree()[other.call->node].parent);
    if (pair.kind() == Kind::pair && unquoted_key(pair.child(Field::key)) == key_of(state) &&
        !other.receiver().text().ends_with(".module"))
      return false;
  }
  for (const BareState& saved : bare_states(program))
    found = found || (saved.key == key_of(state) && restores_the_rest(state, saved));
  return found;
}

}  // namespace

std::vector<CallRef> loads_of_bare_states(const Program& program) {
  std::vector<CallRef> out;
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Ref object = load.receiver();
    const Ref state = load.positional(0);
    const Wrap* wrap = object ? program.wrap_of(object) : nullptr;
    if (wrap == nullptr || !is_saved_bare(program, state) || load.argument(1, "strict") ||
        object.text().ends_with(".module") ||
        load.module->tree().ancestor(load.call->node, Kind::try_statement) != kNoNode ||
        !only_runs_before(program, wrap->call.ref(), load.ref()) ||
        never_both(program, wrap->call.ref(), load.ref()))
      continue;
    out.push_back(load);
  }
  return out;
}

}  // namespace bench::pitfalls
