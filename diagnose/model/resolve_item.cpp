// Where the value of an item of a container comes from.
#include "diagnose/model/resolver.hpp"

namespace bench::diagnose {

// loaders["train"]: an assignment to that very subscript, or an item of a literal container.
void Resolver::follow_subscript(Ref at, int element, int depth) {
  const Module& module = *at.module;
  const SyntaxTree& tree = module.tree();
  const std::size_t before = out.size();
  for (const std::uint32_t index : module.defs_of(at.text(), false)) {
    const Def& def = module.defs()[index];
    if (!tree.contains(def.target, at.node)) follow_def(module, def, element, depth);
  }
  if (out.size() > before) return;
  const auto key = tree.string_value(tree.child(at.node, Field::subscript));
  for (const Source& source : program_.sources(at.child(Field::value))) {
    if (source.how != Source::How::value || source.ref == at) continue;
    follow_items(source.ref, key, depth);
  }
  if (out.size() == before) emit(at, element);
}

// The item of a literal container under the key, or every item when the key is not known.
void Resolver::follow_items(Ref container, const std::optional<std::string>& key, int depth) {
  const SyntaxTree& tree = container.module->tree();
  const Kind kind = container.kind();
  if (kind == Kind::comprehension) {
    NodeId body = tree.child(container.node, Field::body);
    if (body != kNoNode && tree[body].kind == Kind::pair) body = tree.child(body, Field::value);
    return follow(container.with(body), -1, depth + 1);
  }
  if (kind != Kind::dictionary && kind != Kind::list && kind != Kind::tuple) return;
  for (NodeId item = tree[container.node].first_child; item != kNoNode;
       item = tree[item].next_sibling) {
    if (tree[item].kind != Kind::pair) {
      if (kind != Kind::dictionary) follow(container.with(item), -1, depth + 1);
      continue;
    }
    const auto name = tree.string_value(tree.child(item, Field::key));
    if (!key || !name || *key == *name)
      follow(container.with(tree.child(item, Field::value)), -1, depth + 1);
  }
}

}  // namespace bench::diagnose
