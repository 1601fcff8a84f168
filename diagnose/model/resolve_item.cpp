// Where the value of an item of a container comes from: the literal it was made as, what was stored
// in it later, keyword arguments that a function collected.
#include "diagnose/model/reaching.hpp"
#include "diagnose/model/resolver.hpp"

#include <algorithm>
#include <utility>

namespace bench::diagnose {
namespace {

// dict(a=b) and what is made from a dictionary.
bool makes_container(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "dict",  "OrderedDict", "defaultdict", "ModuleDict", "SimpleNamespace", "Namespace",
      "edict", "EasyDict",    "AttrDict",    "Munch",      "DotMap",          "Box"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The function's **kwargs.
bool collects_keywords(const Program& program, const Source& source) {
  if (source.how != Source::How::parameter) return false;
  const FunctionRef function = program.enclosing_function(source.ref);
  if (!function) return false;
  const auto& parameters = function.function->parameters;
  return std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
    return parameter.splat == 'd' && parameter.name == source.ref.text();
  });
}

bool may_be_key(const Module& module, NodeId written, const std::optional<std::string>& key) {
  const auto name = module.tree().string_value(written);
  return !key || !name || *key == *name;
}

}  // namespace

// loaders["train"], loaders.get("train"): an assignment to that very subscript, or an item of what
// the container comes from.
void Resolver::follow_subscript(Ref at, int element, int depth) {
  const std::size_t before = progress();
  if (follow_stored_at(at, element, depth)) return;
  if (is_broadcast_above(at.child(Field::value))) return emit(at, element, Source::How::unknown);
  const auto key = at.module->tree().string_value(at.child(Field::subscript).node);
  follow_item(at.child(Field::value), key, depth);
  if (progress() == before && !key && follow_looked_up_item(at.child(Field::value), depth)) return;
  if (progress() == before) follow_numbered(at, element, depth);
  if (progress() == before) emit(at, element);
}

// parts[0] after parts = build(), and of build()[0]: the function says which of the things that it
// gives back it is, and so does what is known to give back several.
void Resolver::follow_numbered(Ref at, int element, int depth) {
  const Ref number = at.child(Field::subscript);
  if (element >= 0 || depth > kMaxDepth || number.kind() != Kind::integer) return;
  const auto index = program_.integer(number);
  if (!index || *index < 0 || *index > kMaxNumber) return;
  for (const Source& source : program_.sources(at.child(Field::value))) {
    const CallRef made = program_.as_call(source.ref);
    if (source.how != Source::How::value || !made ||
        (made.call->api != Api::deepspeed && !program_.callee(made)))
      continue;
    const std::size_t outer = std::exchange(arity_, 0);
    follow(source.ref, static_cast<int>(*index), depth + 1);
    arity_ = outer;
  }
}

// values = [path]; dist.broadcast_object_list(values); values[0]: what another process has sent,
// and the same in all of them, whatever the list was made of here.
bool Resolver::is_broadcast_above(Ref container) const {
  if (container.kind() != Kind::identifier) return false;
  const Module& module = *container.module;
  const NodeId here = module.function_of(container.node);
  NodeId sent = kNoNode;
  for (const CallRef& call : program_.calls(Api::broadcast))
    if (call.module == &module && call.call->node < container.node &&
        call.call->name == "broadcast_object_list" && module.function_of(call.call->node) == here &&
        call.argument(0, "object_list").text() == container.text())
      sent = call.call->node;
  if (sent == kNoNode) return false;
  const auto& defs = module.defs_of(container.text(), false);
  return std::none_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const Def& def = module.defs()[index];
    return def.target > sent && def.target < container.node &&
           module.function_of(def.target) == here;
  });
}

// loaders["train"] = ... with the same text; in the same function, the latest above.
bool Resolver::follow_stored_at(Ref at, int element, int depth) {
  const Module& module = *at.module;
  const std::size_t before = out.size();
  const auto& indices = module.defs_of(at.text(), false);
  for (auto index = indices.rbegin(); index != indices.rend(); ++index) {
    const Def& def = module.defs()[*index];
    if (module.tree().contains(def.target, at.node)) continue;
    const bool same = module.function_of(def.target) == module.function_of(at.node);
    if (same && !reaches(module, def, at.node)) continue;
    follow_def(module, def, element, depth);
    if (same && dominates(module, def, at.node)) break;
  }
  return out.size() > before;
}

void Resolver::follow_item(Ref container, const Key& key, int depth) {
  if (depth > kMaxDepth) return;
  for (const Source& source : program_.sources(container)) {
    if (collects_keywords(program_, source)) follow_collected(source.ref, key, depth);
    if (source.how == Source::How::value) follow_items_of(source.ref, key, depth);
  }
  follow_stored_here(container, key, depth);
}

// heads[name] = DDP(head) in the very function, whoever made the container.
void Resolver::follow_stored_here(Ref container, const Key& key, int depth) {
  const Module& module = *container.module;
  if (container.kind() != Kind::identifier) return;
  for (const std::uint32_t index : module.item_defs_of(container.text())) {
    const Def& def = module.defs()[index];
    const Ref target = container.with(def.target);
    if (module.function_of(def.target) == module.function_of(container.node) &&
        reaches(module, def, container.node) &&
        may_be_key(module, target.child(Field::subscript).node, key))
      follow_def(module, def, -1, depth + 1);
  }
}

// The items under the key, or every item when the key is not known.
void Resolver::follow_items_of(Ref container, const Key& key, int depth) {
  if (depth > kMaxDepth) return;
  const SyntaxTree& tree = container.module->tree();
  const Kind kind = container.kind();
  if (kind == Kind::comprehension) {
    NodeId body = tree.child(container.node, Field::body);
    if (body != kNoNode && tree[body].kind == Kind::pair) body = tree.child(body, Field::value);
    return follow(container.with(body), -1, depth + 1);
  }
  if (const CallRef made = program_.as_call(container)) {
    // vars(args)["gpus"] is args.gpus.
    if (made.call->name == "vars" && key && made.positional(0))
      return follow_namespace(made.positional(0), *key, container, -1, depth + 1);
    // Whatever a function out of sight has put into it, what is stored here is there afterwards.
    const bool is_unseen = !program_.callee(made) && !program_.class_of_call(made);
    if (!makes_container(made.call->name)) {
      if (is_unseen && key) follow_stored_items(container, key, depth);
      return;
    }
    if (key) follow(made.keyword(*key), -1, depth + 1);
    if (const Ref inner = made.positional(0)) follow_item(inner, key, depth + 1);
    follow_stored_items(container, key, depth);
    return;
  }
  if (kind != Kind::dictionary && kind != Kind::list && kind != Kind::tuple) return;
  if (follow_stored_items(container, key, depth)) return;
  for (NodeId item = tree[container.node].first_child; item != kNoNode;
       item = tree[item].next_sibling) {
    if (tree[item].kind != Kind::pair) {
      if (kind != Kind::dictionary) follow(container.with(item), -1, depth + 1);
    } else if (may_be_key(*container.module, tree.child(item, Field::key), key)) {
      follow(container.with(tree.child(item, Field::value)), -1, depth + 1);
    }
  }
}

// loaders[name] = ... where the container was made, under the name it has there; true where that
// takes the place of what it was made with.
bool Resolver::follow_stored_items(Ref container, const Key& key, int depth) {
  const Module& module = *container.module;
  const std::string_view name = program_.assigned_name(container);
  if (name.empty()) return false;
  const bool of_object = name.starts_with("self.");
  bool replaced = false;
  for (const std::uint32_t index : module.item_defs_of(name)) {
    const Def& def = module.defs()[index];
    const Ref target = container.with(def.target);
    const bool same = of_object
                          ? program_.enclosing_class(target) == program_.enclosing_class(container)
                          : module.function_of(def.target) == module.function_of(container.node);
    const NodeId written = target.child(Field::subscript).node;
    if (!same || !may_be_key(module, written, key)) continue;
    follow_def(module, def, -1, depth + 1);
    const bool is_the_key = key && module.tree().string_value(written) == key;
    replaced = replaced || (is_the_key && dominates(module, def, container.node));
  }
  return replaced;
}

// kwargs["model"]: the keyword argument of the calls.
void Resolver::follow_collected(Ref parameter, const Key& key, int depth) {
  // Keywords handed on by many classes in turn are looked for once in each.
  if (!key || !collected_.insert({parameter, *key}).second) return;
  for (const CallRef& site : program_.call_sites(program_.enclosing_function(parameter))) {
    if (const Ref value = site.keyword(*key))
      follow(value, -1, depth + 1);
    else
      follow_splatted(site, *key, depth);
  }
}

// What f(**options) passes as the parameter.
void Resolver::follow_splatted(const CallRef& call, std::string_view name, int depth) {
  const SyntaxTree& tree = call.module->tree();
  const NodeId list = tree.child(call.call->node, Field::arguments);
  if (list == kNoNode) return;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::dictionary_splat)
      follow_item({call.module, tree[at].first_child}, std::string(name), depth + 1);
}

namespace {

// The index of a field in namedtuple("State", "model loader") or ["model", "loader"].
std::optional<std::size_t> index_of_field(Ref fields, std::string_view name) {
  const SyntaxTree& tree = fields.module->tree();
  std::vector<std::string> names;
  if (const auto text = tree.string_value(fields.node)) {
    std::string word;
    for (const char each : *text + ' ') {
      if (each != ' ' && each != ',') {
        word += each;
      } else if (!word.empty()) {
        names.push_back(std::exchange(word, {}));
      }
    }
  } else if (fields.kind() == Kind::list || fields.kind() == Kind::tuple) {
    for (NodeId at = tree[fields.node].first_child; at != kNoNode; at = tree[at].next_sibling)
      names.push_back(tree.string_value(at).value_or(""));
  }
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

// State(a, b).model after State = namedtuple("State", "model loader").
bool Resolver::follow_named_tuple(Ref made, std::string_view field, int depth) {
  const CallRef call = program_.as_call(made);
  if (!call || depth > kMaxDepth) return false;
  const Ref maker{call.module, call.call->function};
  if (maker.kind() != Kind::identifier && maker.kind() != Kind::attribute) return false;
  for (const Source& source : program_.sources(maker)) {
    const CallRef type = program_.as_call(source.ref);
    if (source.how != Source::How::value || !type || type.call->name != "namedtuple") continue;
    const Ref fields = type.argument(1, "field_names");
    const auto index = fields ? index_of_field(fields, field) : std::nullopt;
    if (!index) continue;
    const Ref value = call.argument(*index, field);
    if (value) follow(value, -1, depth + 1);
    return static_cast<bool>(value);
  }
  return false;
}

}  // namespace bench::diagnose
