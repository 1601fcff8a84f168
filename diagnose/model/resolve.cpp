// Where a value comes from. Names are followed to the assignments that can reach them, attributes
// to the assignments in their class, parameters to the call sites, and calls of local functions to
// what they return. The walk is bounded in depth and width, so cycles and hostile code cost little.
#include "diagnose/model/accelerate.hpp"
#include "diagnose/model/reaching.hpp"
#include "diagnose/model/resolver.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace bench::diagnose {
namespace {

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

// model.module for `model.module if wrapped else model`, which is never the wrapper.
Ref unwrapped(Ref conditional) {
  const SyntaxTree& tree = conditional.module->tree();
  const Ref first = conditional.with(tree.child_at(conditional.node, 0));
  const Ref second = conditional.with(tree.child_at(conditional.node, 2));
  if (first.text() == std::string(second.text()) + ".module") return first;
  if (second.text() == std::string(first.text()) + ".module") return second;
  return {};
}

}  // namespace

void Resolver::follow(Ref at, int element, int depth) {
  if (!at || out.size() >= kMaxSources) return;
  if (depth > kMaxDepth) return;
  if (!seen_.insert({at, element, choosing_.call})) {
    ++met_again_;
    return;
  }
  if (element < 0 && depth > 0 && stands_for_object(at)) names.push_back(at);
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
    case Kind::comprehension: {  // net, ema = (DDP(each) for each in models)
      const Ref body = at.child(Field::body);
      if (element < 0 || !body || body.kind() == Kind::pair) break;
      return follow(body, -1, depth + 1);
    }
    case Kind::tuple:
    case Kind::list:
      if (element < 0) break;
      if (is_of_another_arity(at)) return;
      return follow(at.with(tree.child_at(at.node, static_cast<std::size_t>(element))), -1,
                    depth + 1);
    default:
      break;
  }
  emit(at, element);
}

// net, loader = build() does not get what `return net, optimizer, loader` gives.
bool Resolver::is_of_another_arity(Ref tuple) const {
  const SyntaxTree& tree = tuple.module->tree();
  return arity_ != 0 && tree[tree[tuple.node].parent].kind == Kind::return_statement &&
         tree.child_count(tuple.node) != arity_ && tuple.text().find('*') == std::string_view::npos;
}

namespace {

// How many things the unpacking of `a, b = value` wants; 0 for a, *b.
std::size_t arity_of(const Module& module, const Def& def) {
  const SyntaxTree& tree = module.tree();
  const NodeId targets = tree[def.target].parent;
  if (tree[targets].kind != Kind::tuple && tree[targets].kind != Kind::list) return 0;
  return module.text(targets).find('*') == std::string_view::npos ? tree.child_count(targets) : 0;
}

}  // namespace

void Resolver::emit(Ref at, int element, Source::How how) {
  if (out.size() >= kMaxSources) return;
  out.push_back({at, element >= 0 ? Source::How::element : how, element});
}

void Resolver::follow_def(const Module& module, const Def& def, int element, int depth) {
  const Ref target{&module, def.target};
  switch (def.kind) {
    case DefKind::assign:
      if (is_of_another_choice(target)) return;
      if (def.element >= 0) {  // what is unpacked on the way has no say in what is unpacked here
        const std::size_t outer = std::exchange(arity_, arity_of(module, def));
        follow({&module, def.value}, def.element, depth + 1);
        arity_ = outer;
        return;
      }
      return follow({&module, def.value}, element, depth + 1);
    case DefKind::context:
      return follow({&module, def.value}, element, depth + 1);
    case DefKind::loop:
      return follow_loop(module, def, depth);
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

void Resolver::follow_name(Ref at, int element, int depth) {
  const Module& module = *at.module;
  const std::string_view name = at.text();
  const auto& indices = module.defs_of(name, false);
  NodeId scope = module.scope_of(at.node);
  for (int level = 0; level < kMaxDepth; ++level) {
    const bool is_class = scope != 0 && module[scope].kind == Kind::class_definition;
    // A class body is not visible from the functions inside it.
    const bool visible = !is_class || module.scope_of(at.node) == scope;
    if (visible && follow_scope(at, scope, indices, element, depth, level == 0)) return;
    if (scope == 0) break;
    scope = module.scope_of(scope);
  }
  if (const auto path = module.import_path(name); !path.empty()) {
    if (follow_imported(module, path, element, depth)) return;
  } else if (indices.empty() && follow_starred(module, name, element, depth)) {
    return;
  }
  emit(at, element, Source::How::unknown);
}

namespace {

// The function or class directly in the scope that holds the node.
NodeId inner_scope_at(const Module& module, NodeId node, NodeId scope) {
  NodeId inner = module.scope_of(node);
  while (inner != 0 && module.scope_of(inner) != scope) inner = module.scope_of(inner);
  return inner;
}

// def work(): ... below `from helpers import work`, at the level of the file: whatever functions
// call that name runs this one.
bool takes_name_over(const Module& module, const Def& def) {
  if (def.kind != DefKind::function && def.kind != DefKind::class_definition) return false;
  NodeId around = module[def.target].parent;
  if (module[around].kind == Kind::decorated) around = module[around].parent;
  return module[around].kind == Kind::module;
}

}  // namespace

// Follows the definitions of one scope that reach `at`; false when the scope has none.
bool Resolver::follow_scope(Ref at, NodeId scope, std::span<const std::uint32_t> indices,
                            int element, int depth, bool same_scope) {
  const Module& module = *at.module;
  std::vector<const Def*> here;
  for (const std::uint32_t index : indices) {
    const Def& def = module.defs()[index];
    if (def.scope != scope || def.kind == DefKind::augmented) continue;
    if (here.empty()) here.reserve(indices.size());
    here.push_back(&def);
  }
  if (here.empty()) return false;
  // `global net`: the order of lines holds within a function that assigns it, as for its own names.
  const NodeId own_function = module.function_of(at.node);
  const auto is_own = [&](const Def* def) {
    return def->is_global && own_function != 0 && module.function_of(def->target) == own_function;
  };
  if (std::any_of(here.begin(), here.end(), is_own))
    std::stable_partition(here.begin(), here.end(), [&](const Def* def) { return !is_own(def); });
  bool found = false;
  bool is_taken_over = false;
  std::vector<NodeId> followed;
  // Code of an inner function runs below the line that defines it: of what is assigned above that
  // line it sees what holds there.
  const NodeId reader = same_scope ? at.node : inner_scope_at(module, at.node, scope);
  for (auto def = here.rbegin(); def != here.rend(); ++def) {
    const bool own = is_own(*def);
    const NodeId place = own ? at.node : reader;
    const bool above = same_scope || (*def)->target < place;
    if (own && !above) continue;
    if (above && (*def)->kind != DefKind::function && !reaches(module, **def, place)) continue;
    if ((*def)->kind == DefKind::import) {
      if (!is_taken_over && !follow_imports({here.begin(), def.base()}, at, place, element, depth))
        emit(at, element, Source::How::unknown);
      return true;
    }
    follow_def(module, **def, element, depth);
    found = true;
    is_taken_over = is_taken_over || (!same_scope && takes_name_over(module, **def));
    followed.push_back((*def)->target);
    if (above && (dominates(module, **def, place) || every_branch_assigns(module, followed, place)))
      return true;
  }
  if (!found) {  // used before it is assigned: a loop carries the value round
    for (const Def* def : here) follow_def(module, *def, element, depth);
  }
  return true;
}

// The last of the definitions is an import: that, and those above it which stand in other branches.
// if args.test: from test import main; else: from train import main.
bool Resolver::follow_imports(std::span<const Def* const> defs, Ref at, NodeId place, int element,
                              int depth) {
  const Module& module = *at.module;
  bool found = false;
  for (; !defs.empty() && defs.back()->kind == DefKind::import;
       defs = defs.first(defs.size() - 1)) {
    const Def& def = *defs.back();
    found |= follow_imported(module, module.import_path(def), element, depth);
    if (dominates(module, def, place)) break;
  }
  return found;
}

bool Resolver::follow_imported(const Module& from, std::string_view path, int element, int depth) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || depth > kMaxDepth) return false;
  const Module* target = program_.import_target(from, path.substr(0, dot));
  if (target == nullptr) return false;
  const std::string_view name = path.substr(dot + 1);
  bool found = false;
  for (const std::uint32_t index : target->defs_of(name, false)) {
    const Def& def = target->defs()[index];
    if (def.scope != 0) continue;
    if (def.kind == DefKind::import) {
      found |= follow_imported(*target, target->import_path(def), element, depth + 1);
    } else {
      follow_def(*target, def, element, depth + 1);
      found = true;
    }
  }
  return found || follow_starred(*target, name, element, depth + 1);
}

// A name of `from trainers import *`, also where that file has it from another one in the same way.
bool Resolver::follow_starred(const Module& from, std::string_view name, int element, int depth) {
  constexpr std::size_t kMostFiles = 24;
  if (depth > kMaxDepth) return false;
  std::vector<const Module*> files{&from};
  for (std::size_t i = 0; i < files.size() && files.size() < kMostFiles; ++i)
    for (const NodeId star : files[i]->nodes_of(Kind::wildcard_import)) {
      const SyntaxTree& tree = files[i]->tree();
      const std::string_view path = tree.text(tree.child(tree[star].parent, Field::module_name));
      const Module* target = program_.import_target(*files[i], path);
      if (target == nullptr || std::find(files.begin(), files.end(), target) != files.end())
        continue;
      for (const std::uint32_t index : target->defs_of(name, false)) {
        const Def& def = target->defs()[index];
        if (def.scope != 0) continue;
        if (def.kind == DefKind::import)
          return follow_imported(*target, target->import_path(def), element, depth + 1);
        follow_def(*target, def, element, depth + 1);
        return true;
      }
      files.push_back(target);
    }
  return false;
}

void Resolver::follow_parameter(const Module& module, const Def& def, int element, int depth) {
  const Function* function = module.function_at(def.scope);
  const Ref target{&module, def.target};
  if (function == nullptr) return emit(target, element, Source::How::parameter);
  const std::size_t before = progress();
  std::size_t index = 0;
  while (index < function->parameters.size() && function->parameters[index].name != def.name)
    ++index;
  const bool is_method = function->owner_class != kNoNode && !is_static(module, *function);
  // **kwargs is a dictionary of what is passed by name, and none of that itself.
  if (index < function->parameters.size() && function->parameters[index].splat == 'd')
    return emit(target, element, Source::How::parameter);
  // No argument of a call site is `self`, and mp.spawn gives the first argument itself.
  const FunctionRef here{&module, function};
  const bool is_self = is_method && index == 0;
  if (is_self || (index == (is_method ? 1U : 0U) && program_.is_spawned(here)))
    return emit(target, element, Source::How::parameter);
  bool is_left_out = false;
  for (const CallRef& site : program_.call_sites({&module, function})) {
    Ref value = site.keyword(def.name);
    if (!value && function->name != "__post_init__")
      value = site.positional(is_method ? index - 1 : index);
    if (value)
      follow(value, element, depth + 1);
    else
      follow_splatted(site, def.name, depth);
    is_left_out = is_left_out || (!value && !site.has_splat());
  }
  follow_spawned(*function, index, element, depth);
  if ((is_left_out || progress() == before) && def.value != kNoNode)
    follow({&module, def.value}, element, depth + 1);
  if (progress() == before) emit(target, element, Source::How::parameter);
}

// Arguments that mp.spawn(f, args=(a, b)) passes: f(rank, a, b).
void Resolver::follow_spawned(const Function& function, std::size_t index, int element, int depth) {
  for (const CallRef& call : program_.calls(Api::spawn)) {
    const Ref target = call.argument(0, "fn");
    if (!target || target.text() != function.name || index == 0) continue;
    const Ref arguments = call.argument(1, "args");
    if (!arguments || arguments.kind() != Kind::tuple) continue;
    const NodeId at = arguments.module->tree().child_at(arguments.node, index - 1);
    if (at != kNoNode) follow(arguments.with(at), element, depth + 1);
  }
}

namespace {

// Apex gives back the models and optimizers that it is given, in the same order:
// model, optimizer = amp.initialize(model, optimizer), and lists of them in the same way.
Ref given_to_amp(const CallRef& call, int element) {
  if (call.call->name != "initialize" || call.call->path != "apex.amp.initialize") return {};
  const Ref models = call.argument(0, "models");
  const auto index = static_cast<std::size_t>(std::max(element, 0));
  if (models.kind() != Kind::list) return index == 0 ? models : call.argument(1, "optimizers");
  const NodeId item = models.module->tree().child_at(models.node, index);
  return item == kNoNode ? Ref{} : models.with(item);
}

bool hands_word_over(const CallRef& call) {
  const Ref arguments = call.ref().child(Field::arguments);
  if (!arguments) return false;
  const SyntaxTree& tree = call.module->tree();
  for (NodeId at = tree[arguments.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::string || (tree[at].kind == Kind::keyword_argument &&
                                          tree[tree.child(at, Field::value)].kind == Kind::string))
      return true;
  return false;
}

// size = size.lower() above the test makes another word of it.
bool is_given_another_value(const FunctionRef& function, std::string_view name) {
  const Module& module = *function.module;
  const auto& indices = module.defs_of(name, false);
  return std::any_of(indices.begin(), indices.end(), [&](const std::uint32_t index) {
    const Def& def = module.defs()[index];
    return def.kind != DefKind::parameter && def.scope == function.function->node;
  });
}

// The word that the call hands over by the name of a parameter.
std::optional<std::string> word_for(const CallRef& call, const FunctionRef& function,
                                    std::string_view name) {
  const auto& parameters = function.function->parameters;
  const bool is_method =
      function.function->owner_class != kNoNode && !is_static(*function.module, *function.function);
  const std::size_t first = is_method ? 1 : 0;
  for (std::size_t i = first; i < parameters.size(); ++i) {
    if (parameters[i].name != name) continue;
    const Ref given = call.argument(i - first, name);
    return given && !is_given_another_value(function, name)
               ? call.module->tree().string_value(given.node)
               : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

// if size == "small": net = Small() elif size == "large": net = Large(): make("small") gives the
// one, whatever other calls are for.
bool Resolver::is_of_another_choice(Ref node) const {
  if (!choosing_ || program_.enclosing_function(node) != chosen_in_) return false;
  for (const Guard& guard : program_.guards(node)) {
    const SyntaxTree& tree = guard.condition.module->tree();
    if (guard.condition.kind() != Kind::comparison || tree.child_count(guard.condition.node) != 2)
      continue;
    const Op op = tree[guard.condition.node].op;
    const Ref left = guard.condition.with(tree.child_at(guard.condition.node, 0));
    const auto wanted = tree.string_value(tree.child_at(guard.condition.node, 1));
    if ((op != Op::equal && op != Op::not_equal) || left.kind() != Kind::identifier || !wanted)
      continue;
    const auto given = word_for(choosing_, chosen_in_, left.text());
    if (given && ((*given == *wanted) == (op == Op::equal)) != guard.holds) return true;
  }
  return false;
}

void Resolver::follow_call(Ref at, int element, int depth) {
  const CallRef call = program_.as_call(at);
  if (!call) return emit(at, element);
  if (through_module_) {
    if (returns_self(call.call->name) && call.receiver() && call.call->path.empty())
      return follow(call.receiver(), element, depth + 1);
    if (call.call->api == Api::convert_sync_batch_norm || call.call->api == Api::torch_compile)
      return follow(call.positional(0), element, depth + 1);
    if (const Ref same = given_to_amp(call, element)) return follow(same, -1, depth + 1);
  }
  if (follow_read_by_name(call, element, depth) || follow_looked_up_call(call, depth)) return;
  const bool takes_item = call.call->name == "get" || call.call->name == "pop";
  if (takes_item && call.positional(0) && call.receiver() &&
      call.call->path.empty()) {  // parts.get("model")
    const std::size_t before = out.size();
    follow_item(call.receiver(), at.module->tree().string_value(call.positional(0).node), depth);
    if (out.size() > before) return;
  }
  const FunctionRef function = program_.callee(call);
  if (!function && is_prepare(call.call->name) &&  // accelerator.prepare(a, b)
      (call.call->name == "prepare" || program_.is_accelerator(call.receiver()))) {
    const Ref same = prepared_by(call, element < 0 ? 0 : static_cast<std::size_t>(element));
    if (same) return follow(same, -1, depth + 1);
  }
  if (!function || function.function->makes_object()) return emit(at, element);
  const std::size_t before = progress();
  const bool chooses = hands_word_over(call);
  const auto outer = std::pair(choosing_, chosen_in_);
  if (chooses) std::tie(choosing_, chosen_in_) = std::pair(call, function);
  for (const NodeId value : function.function->returns)
    if (!is_of_another_choice({function.module, value}))
      follow({function.module, value}, element, depth + 1);
  if (chooses) std::tie(choosing_, chosen_in_) = outer;
  // What build(3) gives is among the sources already where build(0) has led to it.
  if (progress() == before) emit(at, element);
}

const std::vector<Source>& Program::resolve(Ref expression, bool through_module) const {
  static const std::vector<Source> kNothing;
  if (!expression) return kNothing;
  const auto [known, is_new] = resolved_.try_emplace({expression, through_module});
  if (!is_new) return known->second;  // of a value that is being looked for, nothing yet
  if (resolving_ >= kNesting) {
    resolved_.erase(known);
    return kNothing;
  }
  std::vector<Source>& found = known->second;  // stays where it is as others are added
  ++resolving_;
  Resolver resolver(*this, through_module);
  resolver.follow(expression);
  --resolving_;
  if (half_known_.is_cut) half_known_.values.emplace_back(expression, through_module);
  found = std::move(resolver.out);
  found.shrink_to_fit();
  return found;
}

std::vector<Ref> Program::names_behind(Ref expression) const {
  if (!expression || resolving_ >= kNesting) return {};
  ++resolving_;
  Resolver resolver(*this, true);
  resolver.follow(expression);
  --resolving_;
  return std::move(resolver.names);
}

}  // namespace bench::diagnose
