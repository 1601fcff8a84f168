// Where a value comes from. Names are followed to the assignments that can reach them, attributes
// to the assignments in their class, parameters to the call sites, and calls of local functions to
// what they return. The walk is bounded in depth and width, so cycles and hostile code cost little.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 14;
constexpr std::size_t kMaxSources = 16;
constexpr int kNesting = 24;  // resolutions that need the result of another one

// Methods of nn.Module that return the module itself.
bool returns_self(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "to",    "cuda",   "cpu",      "train", "eval",           "half",
      "float", "double", "bfloat16", "apply", "requires_grad_", "share_memory",
      "type",  "npu",    "xpu"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_static(const Module& module, const Function& function) {
  const SyntaxTree& tree = module.tree();
  const NodeId parent = tree[function.node].parent;
  if (parent == kNoNode || tree[parent].kind != Kind::decorated) return false;
  for (NodeId at = tree[parent].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::decorator &&
        tree.text(at).find("staticmethod") != std::string_view::npos)
      return true;
  return false;
}

}  // namespace

class Resolver {
 public:
  Resolver(const Program& program, bool through_module)
      : program_(program), through_module_(through_module) {}

  void follow(Ref at, int element = -1, int depth = 0) {
    if (!at || out.size() >= kMaxSources) return;
    if (depth > kDepth || !seen_.insert({at, element}).second) return;
    const SyntaxTree& tree = at.module->tree();
    switch (at.kind()) {
      case Kind::identifier:
        return follow_name(at, element, depth);
      case Kind::attribute:
        return follow_attribute(at, element, depth);
      case Kind::conditional:
        if (const Ref inner = unwrapped(at)) return follow(inner, element, depth + 1);
        follow(at.with(tree.child_at(at.node, 0)), element, depth + 1);
        return follow(at.with(tree.child_at(at.node, 2)), element, depth + 1);
      case Kind::boolean:
        follow(at.child(Field::left), element, depth + 1);
        return follow(at.child(Field::right), element, depth + 1);
      case Kind::named_expression:
        return follow(at.child(Field::value), element, depth + 1);
      case Kind::assignment:  // the inner one of a = b = value
        return follow(at.child(Field::right), element, depth + 1);
      case Kind::call:
        return follow_call(at, element, depth);
      case Kind::subscript:
        return follow_subscript(at, element, depth);
      case Kind::tuple:
      case Kind::list:
        if (element < 0) break;
        return follow(at.with(tree.child_at(at.node, static_cast<std::size_t>(element))), -1,
                      depth + 1);
      default:
        break;
    }
    emit(at, element);
  }

  std::vector<Source> out;

 private:
  void emit(Ref at, int element, Source::How how = Source::How::value) {
    if (out.size() >= kMaxSources) return;
    out.push_back({at, element >= 0 ? Source::How::element : how, element});
  }

  void follow_def(const Module& module, const Def& def, int element, int depth) {
    const Ref target{&module, def.target};
    switch (def.kind) {
      case DefKind::assign:
        return follow({&module, def.value}, def.element >= 0 ? def.element : element, depth + 1);
      case DefKind::context:
        return follow({&module, def.value}, element, depth + 1);
      case DefKind::loop:
        return emit({&module, def.value}, -1, Source::How::loop_item);
      case DefKind::parameter:
        return follow_parameter(module, def, element, depth);
      case DefKind::augmented:
        return;
      case DefKind::import:
      case DefKind::function:
      case DefKind::class_definition:
        return emit(target, element);
    }
  }

  void follow_name(Ref at, int element, int depth) {
    const Module& module = *at.module;
    const std::string_view name = at.text();
    const auto& indices = module.defs_of(name, false);
    NodeId scope = module.scope_of(at.node);
    for (int level = 0; level < kDepth; ++level) {
      const bool is_class = scope != 0 && module[scope].kind == Kind::class_definition;
      // A class body is not visible from the functions inside it.
      const bool visible = !is_class || module.scope_of(at.node) == scope;
      if (visible && follow_scope(at, scope, indices, element, depth, level == 0)) return;
      if (scope == 0) break;
      scope = module.scope_of(scope);
    }
    if (const auto path = module.import_path(name); !path.empty()) {
      if (follow_imported(module, path, element, depth)) return;
    }
    emit(at, element, Source::How::unknown);
  }

  // Follows the definitions of one scope that reach `at`; false when the scope has none.
  bool follow_scope(Ref at, NodeId scope, const std::vector<std::uint32_t>& indices, int element,
                    int depth, bool same_scope) {
    const Module& module = *at.module;
    std::vector<const Def*> here;
    for (const std::uint32_t index : indices) {
      const Def& def = module.defs()[index];
      if (def.scope == scope && def.kind != DefKind::augmented) here.push_back(&def);
    }
    if (here.empty()) return false;
    bool found = false;
    std::vector<NodeId> followed;
    for (auto def = here.rbegin(); def != here.rend(); ++def) {
      if (same_scope && (*def)->kind != DefKind::function && !reaches(module, **def, at.node))
        continue;
      if ((*def)->kind == DefKind::import) {
        if (!follow_imported(module, module.import_path((*def)->name), element, depth))
          emit(at, element, Source::How::unknown);
        return true;
      }
      follow_def(module, **def, element, depth);
      found = true;
      followed.push_back((*def)->target);
      if (same_scope &&
          (dominates(module, **def, at.node) || every_branch_assigns(module, followed, at.node)))
        return true;
    }
    if (!found) {  // used before it is assigned: a loop carries the value round
      for (const Def* def : here) follow_def(module, *def, element, depth);
    }
    return true;
  }

  // The block that holds the definition returns or raises before control comes to the use.
  static bool leaves_before(const Module& module, NodeId target, NodeId use) {
    const SyntaxTree& tree = module.tree();
    for (NodeId at = tree[target].parent; at != kNoNode && !tree.contains(at, use);
         at = tree[at].parent) {
      if (tree[at].kind == Kind::function) return false;
      if (tree[at].kind != Kind::block) continue;
      NodeId last = kNoNode;
      for (NodeId each = tree[at].first_child; each != kNoNode; each = tree[each].next_sibling)
        last = each;
      if (last != kNoNode &&
          (tree[last].kind == Kind::return_statement || tree[last].kind == Kind::raise_statement))
        return true;
    }
    return false;
  }

  static bool reaches(const Module& module, const Def& def, NodeId use) {
    if (def.kind == DefKind::parameter) return true;
    if (def.target >= use || leaves_before(module, def.target, use)) return false;
    if (def.kind == DefKind::import || def.kind == DefKind::class_definition) return true;
    // x = f(x): the use on the right sees the earlier value.
    const NodeId parent = module[def.target].parent;
    const NodeId statement =
        parent != kNoNode && module[parent].kind == Kind::tuple ? module[parent].parent : parent;
    return statement == kNoNode || def.kind == DefKind::loop || def.kind == DefKind::context ||
           !module.tree().contains(statement, use);
  }

  // model.module for `model.module if wrapped else model`, which is never the wrapper.
  static Ref unwrapped(Ref conditional) {
    const SyntaxTree& tree = conditional.module->tree();
    const Ref first = conditional.with(tree.child_at(conditional.node, 0));
    const Ref second = conditional.with(tree.child_at(conditional.node, 2));
    if (first.text() == std::string(second.text()) + ".module") return first;
    if (second.text() == std::string(first.text()) + ".module") return second;
    return {};
  }

  // The last of `targets` stands in a branch of an if that ends above `use`, and each of its other
  // branches, else included, has one of the targets too: nothing above the if is seen.
  static bool every_branch_assigns(const Module& module, const std::vector<NodeId>& targets,
                                   NodeId use) {
    const SyntaxTree& tree = module.tree();
    NodeId branch = targets.back();
    while (branch != kNoNode && tree[branch].kind != Kind::block) branch = tree[branch].parent;
    if (branch == kNoNode || tree.contains(branch, use)) return false;
    NodeId outer = tree[branch].parent;
    if (outer != kNoNode && tree[outer].kind != Kind::if_statement) outer = tree[outer].parent;
    if (outer == kNoNode || tree[outer].kind != Kind::if_statement || tree.contains(outer, use) ||
        !tree.contains(tree[outer].parent, use))
      return false;
    bool otherwise = false;
    for (NodeId at = tree[outer].first_child; at != kNoNode; at = tree[at].next_sibling) {
      const Kind kind = tree[at].kind;
      if (kind != Kind::block && kind != Kind::elif_clause && kind != Kind::else_clause) continue;
      otherwise = otherwise || kind == Kind::else_clause;
      const bool assigns = std::any_of(targets.begin(), targets.end(), [&](NodeId target) {
        NodeId block = target;
        while (block != kNoNode && tree[block].kind != Kind::block) block = tree[block].parent;
        return block == at || (block != kNoNode && tree[block].parent == at);
      });
      if (!assigns) return false;
    }
    return otherwise;
  }

  static bool dominates(const Module& module, const Def& def, NodeId use) {
    if (def.kind == DefKind::parameter) return true;
    NodeId block = module[def.target].parent;
    while (block != kNoNode && module[block].kind != Kind::block &&
           module[block].kind != Kind::module)
      block = module[block].parent;
    if (def.kind == DefKind::loop) return module.tree().contains(module[def.value].parent, use);
    return block == kNoNode || module.tree().contains(block, use);
  }

  bool follow_imported(const Module& from, std::string_view path, int element, int depth) {
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos || depth > kDepth) return false;
    const Module* target = program_.import_target(from, path.substr(0, dot));
    if (target == nullptr) return false;
    const std::string_view name = path.substr(dot + 1);
    bool found = false;
    for (const std::uint32_t index : target->defs_of(name, false)) {
      const Def& def = target->defs()[index];
      if (def.scope != 0) continue;
      if (def.kind == DefKind::import) {
        found |= follow_imported(*target, target->import_path(name), element, depth + 1);
      } else {
        follow_def(*target, def, element, depth + 1);
        found = true;
      }
    }
    return found;
  }

  void follow_parameter(const Module& module, const Def& def, int element, int depth) {
    const Function* function = module.function_at(def.scope);
    const Ref target{&module, def.target};
    if (function == nullptr) return emit(target, element, Source::How::parameter);
    const std::size_t before = out.size();
    std::size_t index = 0;
    while (index < function->parameters.size() && function->parameters[index].name != def.name)
      ++index;
    const bool is_method = function->owner_class != kNoNode && !is_static(module, *function);
    // No argument of a call site is `self`, and mp.spawn gives the first argument itself.
    const FunctionRef here{&module, function};
    const bool is_self = is_method && index == 0;
    if (is_self || (index == (is_method ? 1U : 0U) && program_.is_spawned(here)))
      return emit(target, element, Source::How::parameter);
    for (const CallRef& site : program_.call_sites({&module, function})) {
      Ref value = site.keyword(def.name);
      if (!value) value = site.positional(is_method ? index - 1 : index);
      if (value) follow(value, element, depth + 1);
    }
    follow_spawned(module, *function, index, element, depth);
    if (out.size() == before && def.value != kNoNode)
      follow({&module, def.value}, element, depth + 1);
    if (out.size() == before) emit(target, element, Source::How::parameter);
  }

  // Arguments that mp.spawn(f, args=(a, b)) passes: f(rank, a, b).
  void follow_spawned(const Module& module, const Function& function, std::size_t index,
                      int element, int depth) {
    for (const CallRef& call : program_.calls(Api::spawn)) {
      const Ref target = call.argument(0, "fn");
      if (!target || target.text() != function.name || index == 0) continue;
      const Ref arguments = call.argument(1, "args");
      if (!arguments || arguments.kind() != Kind::tuple) continue;
      const NodeId at = arguments.module->tree().child_at(arguments.node, index - 1);
      if (at != kNoNode) follow(arguments.with(at), element, depth + 1);
    }
    (void)module;
  }

  void follow_attribute(Ref at, int element, int depth) {
    const Module& module = *at.module;
    if (const std::string name = module.qualified(at.node); !name.empty()) {
      if (!follow_imported(module, name, element, depth)) emit(at, element);
      return;
    }
    const Ref object = at.child(Field::object);
    const Ref attribute = at.child(Field::attribute);
    if (!object || !attribute) return emit(at, element, Source::How::unknown);
    const std::string_view name = attribute.text();
    const std::size_t before = out.size();
    const ClassRef owner = object.text() == "self" ? program_.enclosing_class(at) : ClassRef{};
    if (owner) {
      follow_class_attribute(owner, name, at, element, depth);
    } else if (object.kind() == Kind::identifier || object.kind() == Kind::attribute) {
      follow_namespace(object, name, at, element, depth);
    }
    if (out.size() == before) emit(at, element, Source::How::unknown);
  }

  void follow_class_attribute(ClassRef owner, std::string_view name, Ref use, int element,
                              int depth) {
    const Module& module = *owner.module;
    std::vector<const Def*> found;
    for (const std::uint32_t index : module.defs_of(name, true)) {
      const Def& def = module.defs()[index];
      if (!module.tree().contains(owner.cls->node, def.target) || def.kind == DefKind::augmented)
        continue;
      if (module.text(module.tree().child(def.target, Field::object)) == "self")
        found.push_back(&def);
    }
    const Module* at = use.module;
    const NodeId here = at->function_of(use.node);
    bool local = false;
    // Within the method that assigns it, the latest assignment above is the one that holds.
    for (auto def = found.rbegin(); def != found.rend() && !local; ++def) {
      if (at != &module || module.function_of((*def)->target) != here) continue;
      if (!reaches(module, **def, use.node)) continue;
      follow_def(module, **def, element, depth);
      local = dominates(module, **def, use.node);
    }
    if (local) return;
    for (const Def* def : found)
      if (at != &module || module.function_of(def->target) != here || def->target > use.node)
        follow_def(module, *def, element, depth);
    for (const std::uint32_t index : module.defs_of(name, false)) {
      const Def& def = module.defs()[index];
      if (def.scope == owner.cls->node && def.kind == DefKind::assign)
        follow_def(module, def, element, depth);
    }
  }

  // self.args for args after args = self.args in the same function.
  static std::string_view alias_of(Ref object) {
    const Module& module = *object.module;
    for (const std::uint32_t index : module.defs_of(object.text(), false)) {
      const Def& def = module.defs()[index];
      if (def.kind == DefKind::assign && def.element < 0 && def.value != kNoNode &&
          module[def.value].kind == Kind::attribute &&
          module.function_of(def.target) == module.function_of(object.node))
        return module.text(def.value);
    }
    return {};
  }

  // args.gpu = ..., cfg.batch_size = ..., an argparse option, or an object of a local class.
  void follow_namespace(Ref object, std::string_view name, Ref use, int element, int depth) {
    const std::string_view object_text = object.text();
    const std::string_view alias = alias_of(object);
    bool found = false;
    for (const Module* module : program_.modules()) {
      for (const std::uint32_t index : module->defs_of(name, true)) {
        const Def& def = module->defs()[index];
        if (def.kind == DefKind::augmented) continue;
        const std::string_view owner =
            module->text(module->tree().child(def.target, Field::object));
        if (owner != object_text && (alias.empty() || owner != alias)) continue;
        if (module == use.module &&
            module->function_of(def.target) == module->function_of(use.node) &&
            !reaches(*module, def, use.node))
          continue;
        follow_def(*module, def, element, depth);
        found = true;
      }
    }
    if (found) return;
    if (const ClassRef owner = program_.class_of(object)) {
      follow_class_attribute(owner, name, use, element, depth);
      return;
    }
    for (const CallRef& call : program_.calls_named("add_argument")) {
      if (argument_name(call) == name) emit(call.ref(), element, Source::How::argument);
    }
  }

  // The attribute an add_argument call fills: dest, else the first long option.
  static std::string argument_name(const CallRef& call) {
    const SyntaxTree& tree = call.module->tree();
    if (const Ref dest = call.keyword("dest"))
      if (auto name = tree.string_value(dest.node)) return *name;
    std::string best;
    for (std::size_t i = 0;; ++i) {
      const Ref at = call.positional(i);
      if (!at) break;
      auto option = tree.string_value(at.node);
      if (!option) continue;
      const bool is_long = option->starts_with("--");
      option->erase(0, option->find_first_not_of('-'));
      std::replace(option->begin(), option->end(), '-', '_');
      if (best.empty() || is_long) best = *option;
      if (is_long) break;
    }
    return best;
  }

  // loaders["train"]: an assignment to that very subscript, or an item of a literal container.
  void follow_subscript(Ref at, int element, int depth) {
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
  void follow_items(Ref container, const std::optional<std::string>& key, int depth) {
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

  void follow_call(Ref at, int element, int depth) {
    const CallRef call = program_.as_call(at);
    if (!call) return emit(at, element);
    if (through_module_) {
      if (returns_self(call.call->name) && call.receiver() &&
          at.module->qualified(call.call->function).empty())
        return follow(call.receiver(), element, depth + 1);
      if (call.call->api == Api::convert_sync_batch_norm || call.call->api == Api::torch_compile)
        return follow(call.positional(0), element, depth + 1);
    }
    if (call.call->name == "prepare" && call.positional(0)) {  // accelerator.prepare(a, b)
      const Ref same = call.positional(element < 0 ? 0 : static_cast<std::size_t>(element));
      if (same) return follow(same, -1, depth + 1);
    }
    const FunctionRef function = program_.callee(call);
    if (!function || function.function->name == "__init__") return emit(at, element);
    const std::size_t before = out.size();
    for (const NodeId value : function.function->returns)
      follow({function.module, value}, element, depth + 1);
    if (out.size() == before) emit(at, element);
  }

  const Program& program_;
  bool through_module_;
  std::set<std::pair<Ref, int>> seen_;
};

std::vector<Source> Program::resolve(Ref expression, bool through_module) const {
  if (!expression) return {};
  const auto known = resolved_.find({expression, through_module});
  if (known != resolved_.end()) return known->second;
  if (resolving_ >= kNesting) return {};
  resolved_[{expression, through_module}] = {};  // a cycle finds nothing instead of looping
  ++resolving_;
  Resolver resolver(*this, through_module);
  resolver.follow(expression);
  --resolving_;
  return resolved_[{expression, through_module}] = std::move(resolver.out);
}

std::vector<Source> Program::sources(Ref expression) const { return resolve(expression, false); }

std::vector<Source> Program::module_sources(Ref expression) const {
  return resolve(expression, true);
}

}  // namespace bench::diagnose
