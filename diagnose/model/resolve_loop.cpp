// Where the value of a name comes from that a loop gives: the values of a dictionary of models, the
// items of a list of loaders, through enumerate(), zip() and progress bars. The iterable itself is
// told too, as what gives the items, since most of them (loaders, ranges) cannot be followed.
#include "diagnose/model/resolver.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// for i, (name, model) in ...: {1, 1} for model; empty for a name that takes the whole item.
std::vector<int> place_of(const Module& module, NodeId target) {
  const SyntaxTree& tree = module.tree();
  std::vector<int> path;
  for (NodeId at = target; tree[at].parent != kNoNode; at = tree[at].parent) {
    const NodeId parent = tree[at].parent;
    if (tree[parent].kind != Kind::tuple && tree[parent].kind != Kind::list) break;
    int index = 0;
    for (NodeId each = tree[parent].first_child; each != at; each = tree[each].next_sibling)
      ++index;
    path.insert(path.begin(), index);
  }
  return path;
}

// Gives the items of its first argument as they are.
bool gives_the_same(std::string_view name) {
  static constexpr std::string_view kNames[] = {"tqdm",   "list",     "tuple", "iter",
                                                "sorted", "reversed", "track", "cycle"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool has_keys(Ref container) {
  const SyntaxTree& tree = container.module->tree();
  const NodeId body = tree.child(container.node, Field::body);
  return body != kNoNode && tree[body].kind == Kind::pair;
}

}  // namespace

void Resolver::follow_loop(const Module& module, const Def& def, int depth) {
  const Ref iterable{&module, def.value};
  emit(iterable, -1, Source::How::loop_item);
  const Path place = place_of(module, def.target);
  if (place == Path{1}) follow_looked_up_round(iterable, {&module, def.target}, depth + 1);
  follow_round(iterable, place, depth + 1);
}

// What each round of a loop over the iterable gives at this place of its targets.
void Resolver::follow_round(Ref iterable, Path path, int depth) {
  if (!iterable || depth > kMaxDepth) return;
  const auto rest = [&] { return Path(path.begin() + 1, path.end()); };
  if (const CallRef call = program_.as_call(iterable)) {
    const std::string_view name = call.call->name;
    const bool is_pair = !path.empty() && path.front() == 1;
    if (name == "values" && path.empty() && call.receiver())
      return follow_item(call.receiver(), std::nullopt, depth);
    if (name == "items" && path.size() == 1 && is_pair && call.receiver())
      return follow_item(call.receiver(), std::nullopt, depth);
    if (name == "enumerate" && is_pair) return follow_round(call.positional(0), rest(), depth + 1);
    if (name == "zip" && !path.empty())
      return follow_round(call.positional(static_cast<std::size_t>(path.front())), rest(),
                          depth + 1);
    if (gives_the_same(name)) return follow_round(call.positional(0), path, depth + 1);
    return;
  }
  if (iterable.kind() == Kind::list || iterable.kind() == Kind::tuple)
    return follow_picked(iterable, path, depth);
  if (!stands_for_object(iterable)) return;
  for (const Source& source : program_.sources(iterable))
    if (source.how == Source::How::value && source.ref != iterable)
      follow_picked(source.ref, path, depth);
}

// The items of a list, or what stands at this place of each; a dictionary gives its keys.
void Resolver::follow_picked(Ref list, const Path& path, int depth) {
  const Kind kind = list.kind();
  if (depth > kMaxDepth || path.size() > 1) return;
  const int element = path.empty() ? -1 : path.front();
  const SyntaxTree& tree = list.module->tree();
  if (kind == Kind::comprehension && !has_keys(list))
    return follow(list.with(tree.child(list.node, Field::body)), element, depth + 1);
  if (kind != Kind::list && kind != Kind::tuple) return;
  for (NodeId at = tree[list.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    follow(list.with(at), element, depth + 1);
  follow_appended(list, path, depth);
}

// models.append(x) where the list was made, under the name it has there.
void Resolver::follow_appended(Ref list, const Path& path, int depth) {
  const std::string_view name = program_.assigned_name(list);
  if (name.empty()) return;
  const bool of_object = name.starts_with("self.");
  for (const CallRef& call : program_.calls_named("append")) {
    const Ref receiver = call.receiver();
    if (call.module != list.module || receiver.text() != name) continue;
    const bool same =
        of_object ? program_.enclosing_class(receiver) == program_.enclosing_class(list)
                  : list.module->function_of(receiver.node) == list.module->function_of(list.node);
    if (same) follow(call.positional(0), path.empty() ? -1 : path.front(), depth + 1);
  }
}

}  // namespace bench::diagnose
