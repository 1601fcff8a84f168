#include "scenarios/pitfalls/wrappers/type_tests.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

// DDP, another name for it, or a tuple that holds it.
bool names_wrapper(const Program& program, Ref type, int depth = 0) {
  constexpr int kNames = 4;
  if (!type || depth > kNames) return false;
  const Api api = type.module->api(type.node);
  if (api == Api::ddp || api == Api::data_parallel || facts::contains(type.text(), "Parallel"))
    return true;
  const auto& tree = type.module->tree();
  if (type.kind() == Kind::tuple || type.kind() == Kind::list || type.kind() == Kind::set) {
    for (NodeId at = tree[type.node].first_child; at != kNoNode; at = tree[at].next_sibling)
      if (names_wrapper(program, type.with(at), depth + 1)) return true;
    return false;
  }
  const auto& sources = program.sources(type);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.ref != type && names_wrapper(program, source.ref, depth + 1);
  });
}

}  // namespace

// if isinstance(model, DDP): model.module.encode() else: model.encode()
bool is_tested_for_wrapper(const Program& program, Ref use) {
  const std::string type = "type(" + std::string(use.child(Field::object).text()) + ")";
  return program.under(use, [&](Ref condition, bool holds) {
    const std::string_view text = condition.text();
    const bool asks = facts::contains(text, "isinstance") || facts::contains(text, "hasattr") ||
                      facts::contains(text, "type(");
    // A wrapper answers with its own name.
    if (holds && facts::contains(text, "_get_name() ==")) return true;
    // if type(model) in KINDS: the wrapper's type is none of the model's own.
    const auto& tree = condition.module->tree();
    if (holds && condition.kind() == Kind::comparison && text.starts_with(type) &&
        tree.child_count(condition.node) == 2) {
      const bool negated = facts::contains(text, "!=") || facts::contains(text, " not ");
      return negated == names_wrapper(program, condition.with(tree.child_at(condition.node, 1)));
    }
    return asks && !holds && !text.starts_with("not ");
  });
}

}  // namespace bench::pitfalls
