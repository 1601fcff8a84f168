#include "scenarios/pitfalls/files/saved_states.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;

namespace {

bool is_named_saving(std::string_view name) {
  return says_any(name, {"save", "checkpoint", "ckpt", "snapshot", "dump", "write", "export"}) &&
         !says_any(name, {"load", "restore", "resume"});
}

// The calls of an expression, and those that the program's own functions in it give back:
// {"model": weights_of(model)}.
void add_calls(const Program& program, Ref expression, std::vector<CallRef>& out) {
  for (const CallRef& call : facts::calls_in(expression)) {
    out.push_back(call);
    if (!program.callee(call)) continue;
    for (const diagnose::Source& source : program.sources(call.ref()))
      if (source.ref != call.ref())
        for (const CallRef& below : facts::calls_in(source.ref)) out.push_back(below);
  }
}

// weights in {"model": weights} and in {k: v.cpu() for k, v in weights.items()}: what goes into the
// file under a name of its own.
std::vector<Ref> names_within(Ref expression) {
  std::vector<Ref> out;
  const auto& tree = expression.module->tree();
  for (diagnose::NodeId at = expression.node; at < tree[expression.node].last; ++at) {
    if (tree[at].kind != Kind::identifier) continue;
    const Kind parent = tree[tree[at].parent].kind;
    const bool is_entry = tree[at].field == Field::value &&
                          (parent == Kind::pair || parent == Kind::keyword_argument);
    const bool is_walked = parent == Kind::attribute && tree[at].field == Field::object &&
                           tree.text(tree.child(tree[at].parent, Field::attribute)) == "items";
    if (is_entry || is_walked) out.push_back(expression.with(at));
  }
  return out;
}

// Both, also behind those names.
void add_all(const Program& program, Ref expression, int depth, std::vector<CallRef>& out) {
  constexpr int kMostNames = 3;  // on the way
  add_calls(program, expression, out);
  if (depth == kMostNames) return;
  for (const Ref name : names_within(expression))
    for (const diagnose::Source& source : program.sources(name))
      if (source.how == diagnose::Source::How::value && source.ref != name)
        add_all(program, source.ref, depth + 1, out);
}

// state["model"] = net.state_dict() and state.update(model=...) where the dictionary was made,
// under the name it has there.
void add_stored_where_made(const Program& program, Ref made, std::vector<CallRef>& out) {
  const std::string_view name = program.assigned_name(made);
  if (name.empty()) return;
  const auto& module = *made.module;
  const auto is_beside = [&](diagnose::NodeId node) {
    return module.function_of(node) == module.function_of(made.node);
  };
  for (const std::uint32_t index : module.item_defs_of(name)) {
    const diagnose::Def& def = module.defs()[index];
    if (def.value != diagnose::kNoNode && is_beside(def.target))
      add_all(program, made.with(def.value), 1, out);
  }
  for (const CallRef& update : program.calls_named("update"))
    if (update.module == made.module && update.receiver().text() == name &&
        is_beside(update.call->node))
      for (const Ref given : facts::arguments_of(update)) add_all(program, given, 1, out);
}

}  // namespace

std::vector<CallRef> calls_that_save(const Program& program) {
  std::vector<CallRef> out(program.calls(Api::torch_save).begin(),
                           program.calls(Api::torch_save).end());
  for (const CallRef& call : program.calls_that(is_named_saving))
    if (call.call->api == Api::none && !program.callee(call)) out.push_back(call);
  return out;
}

std::vector<CallRef> calls_saved(const Program& program, const CallRef& save) {
  std::vector<CallRef> out;
  for (const Ref saved : facts::arguments_of(save)) {
    add_all(program, saved, 0, out);
    for (const Ref item : facts::items_stored_in(saved)) add_all(program, item, 1, out);
    for (const diagnose::Source& source : program.sources(saved))
      if (source.ref != saved) {
        add_all(program, source.ref, 0, out);
        add_stored_where_made(program, source.ref, out);
      }
    if (save.call->api == Api::torch_save) break;
  }
  return out;
}

namespace {

// A path as it is written where it gets its value, in one spelling of spaces and quotes; empty
// where it is not written out.
std::string spelled(const Program& program, Ref path) {
  const auto& sources = program.sources(path);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value) return {};
  const Ref value = sources.front().ref;
  const diagnose::Kind kind = value.kind();
  if (kind != diagnose::Kind::string && kind != diagnose::Kind::binary &&
      kind != diagnose::Kind::call)
    return {};
  std::string out;
  for (const char each : value.text())
    if (each != ' ') out += each == '"' ? '\'' : each;
  return out;
}

bool saves_a_state(const Program& program, const CallRef& save) {
  const auto calls = calls_saved(program, save);
  return std::any_of(calls.begin(), calls.end(),
                     [](const CallRef& call) { return call.call->name == "state_dict"; });
}

}  // namespace

bool is_saved_there(const Program& program, Ref path) {
  if (!path) return false;
  const std::string mine = spelled(program, path);
  for (const CallRef& save : calls_that_save(program)) {
    const bool is_torch = save.call->api == Api::torch_save;
    for (const Ref each : facts::arguments_of(save)) {
      if (is_torch && each != save.argument(1, "f")) continue;
      const bool is_same = (is_torch && each.text() == path.text()) ||
                           (!mine.empty() && spelled(program, each) == mine);
      if (is_same && (is_torch || saves_a_state(program, save))) return true;
    }
  }
  return false;
}

}  // namespace bench::pitfalls
