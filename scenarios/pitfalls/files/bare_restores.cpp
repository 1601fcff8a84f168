#include "scenarios/pitfalls/files/bare_restores.hpp"

#include "scenarios/pitfalls/files/restored.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Wrap;

namespace {

// {"model": state, "epoch": epoch}, where the state is one entry of several.
Ref dictionary_around(const CallRef& state) {
  const auto& tree = state.module->tree();
  const Ref pair = state.ref().with(tree[state.call->node].parent);
  return pair.kind() == Kind::pair ? pair.with(tree[pair.node].parent) : Ref{};
}

std::string key_of_entry(const CallRef& state) {
  const auto& tree = state.module->tree();
  const NodeId pair = tree[state.call->node].parent;
  return tree.string_value(tree.child(pair, Field::key)).value_or("");
}

// What the project's own runs have written: the path says so, or other entries are read beside the
// state.
bool is_of_own_run(const Program& program, const CallRef& file, Ref dictionary,
                   const std::string& key) {
  const auto& sources = program.sources(file.argument(0, "f"));
  const auto says = [](Ref at) {
    return says_any(at.text(), {"resume", "checkpoint", "ckpt", "last", "latest"});
  };
  if (says(file.ref()) || std::any_of(sources.begin(), sources.end(),
                                      [&](const auto& source) { return says(source.ref); }))
    return true;
  const std::string name(program.assigned_name(file.ref()));
  const auto& tree = dictionary.module->tree();
  for (NodeId pair = tree[dictionary.node].first_child; pair != kNoNode;
       pair = tree[pair].next_sibling) {
    if (tree[pair].kind != Kind::pair) continue;
    const std::string other = tree.string_value(tree.child(pair, Field::key)).value_or("");
    if (name.empty() || other.empty() || other == key) continue;
    for (const std::string& quoted : {"'" + other + "'", "\"" + other + "\""})
      if (file.module->tree().source().find(name + "[" + quoted + "]") != std::string_view::npos)
        return true;
  }
  return false;
}

// The file as a whole, or another entry: none of what is saved under the key.
bool is_something_else(const Program& program, Ref state) {
  if (state.kind() == Kind::subscript)
    return program.made_by(state.child(Field::value)).call != nullptr;
  const CallRef made = program.made_by(state);
  return made && made.call->api == Api::torch_load;
}

}  // namespace

bool goes_back_bare(const Program& program, const CallRef& state) {
  const Ref dictionary = dictionary_around(state);
  const std::string key = dictionary ? key_of_entry(state) : "";
  const Wrap* wrap = state.receiver() ? program.wrap_of(state.receiver()) : nullptr;
  if (wrap == nullptr || key.empty()) return false;
  bool goes_back = false;
  for (const CallRef& restore : program.calls_named("load_state_dict")) {
    const Ref object = restore.receiver();
    const Ref restored = restore.positional(0);
    if (!object || !restored) continue;
    const auto files = program.calls(Api::torch_load);
    const auto file = std::find_if(files.begin(), files.end(), [&](const CallRef& each) {
      return is_item_restored(program, restored, each, key);
    });
    const Wrap* around = program.wrap_of(object);
    if (around != nullptr && !only_runs_before(program, restore.ref(), around->call.ref())) {
      if (file != files.end() || !is_something_else(program, restored)) return false;
      continue;
    }
    goes_back = goes_back || (file != files.end() && is_wrapped_later(program, object) &&
                              only_runs_before(program, restore.ref(), wrap->call.ref()) &&
                              restore.module->tree().ancestor(restore.call->node,
                                                              Kind::try_statement) == kNoNode &&
                              is_of_own_run(program, *file, dictionary, key));
  }
  return goes_back;
}

}  // namespace bench::pitfalls
