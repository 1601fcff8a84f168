#include "scenarios/pitfalls/files/pickled.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

bool may_be_object(Ref value) { return diagnose::stands_for_object(value); }

// The values of {"encoder": encoder} and dict(encoder=encoder).
void add_values(const Program& program, Ref made, std::vector<Ref>& out) {
  const auto& tree = made.module->tree();
  const CallRef call = program.as_call(made);
  const bool is_dict = call && call.call->name == "dict" && !call.receiver();
  if (made.kind() != Kind::dictionary && !is_dict) return;
  const NodeId list = is_dict ? tree.child(made.node, Field::arguments) : made.node;
  if (list == kNoNode) return;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::pair && tree[at].kind != Kind::keyword_argument) continue;
    const Ref value = made.with(tree.child(at, Field::value));
    if (may_be_object(value)) out.push_back(value);
  }
}

}  // namespace

std::vector<Ref> pickled_by(const Program& program, const CallRef& save) {
  std::vector<Ref> out;
  const Ref given = save.argument(0, "obj");
  if (!given) return out;
  if (given.kind() == Kind::dictionary || given.kind() == Kind::call) {
    add_values(program, given, out);
    return out;
  }
  out.push_back(given);
  if (given.kind() != Kind::identifier) return out;
  for (const Source& source : program.sources(given))
    if (source.how == Source::How::value && source.ref != given &&
        program.enclosing_function(source.ref) == program.enclosing_function(given))
      add_values(program, source.ref, out);
  for (const Ref stored : facts::items_stored_in(given))
    if (may_be_object(stored) && stored.node < given.node) out.push_back(stored);
  return out;
}

}  // namespace bench::pitfalls
