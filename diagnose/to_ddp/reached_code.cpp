#include "diagnose/to_ddp/reached_code.hpp"

#include "diagnose/driver/assemble.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr int kMostCallers = 6;  // above each other

// The identifier is read: no definition, no import, no name of an argument.
bool is_read(const SyntaxTree& tree, NodeId id) {
  const Field field = tree[id].field;
  if (field == Field::name || field == Field::alias) return false;
  const NodeId list = tree.ancestor(id, Kind::argument_list);
  if (list != kNoNode && tree[list].field == Field::superclasses) return false;
  const Kind parent = tree[tree[id].parent].kind;
  if (parent == Kind::parameters || parent == Kind::dotted_name || parent == Kind::import_from ||
      parent == Kind::import_statement || parent == Kind::aliased_import)
    return false;
  const NodeId whole = field == Field::attribute ? tree[id].parent : id;
  return tree[whole].field != Field::left || tree[tree[whole].parent].kind == Kind::comparison ||
         tree[tree[whole].parent].kind == Kind::binary ||
         tree[tree[whole].parent].kind == Kind::boolean;
}

// Bases whose methods are called by their usual names alone.
bool is_plain_base(const Module& module, const Class& cls, std::size_t index) {
  constexpr std::string_view kPlain[] = {"object", "ABC", "Enum", "Exception", "dict", "Dataset"};
  if (cls.base_apis[index] == Api::module_class || cls.base_apis[index] == Api::iterable_dataset ||
      cls.base_apis[index] == Api::data_parallel || cls.base_apis[index] == Api::ddp)
    return true;
  const std::string path = module.qualified(cls.bases[index]);
  if (path.starts_with("torch.")) return true;
  const std::string_view text = module.text(cls.bases[index]);
  const std::string_view last = text.substr(text.rfind('.') + 1);
  return std::find(std::begin(kPlain), std::end(kPlain), last) != std::end(kPlain);
}

bool has_decorator(const Module& module, NodeId definition,
                   std::initializer_list<std::string_view> words) {
  const SyntaxTree& tree = module.tree();
  const NodeId around = tree[definition].parent;
  if (tree[around].kind != Kind::decorated) return false;
  for (NodeId at = tree[around].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::decorator && pitfalls::says_any(tree.text(at), words)) return true;
  return false;
}

// Trainer(opt) and nets.Net() after if opt.large: from large import Trainer, else: from small
// import Trainer.
bool is_imported_twice(const CallRef& call) {
  const SyntaxTree& tree = call.module->tree();
  NodeId first = call.call->function;
  while (first != kNoNode && tree[first].kind == Kind::attribute)
    first = tree.child(first, Field::object);
  const auto& defs = call.module->defs();
  const auto indices = call.module->defs_of(tree.text(first), false);
  return std::count_if(indices.begin(), indices.end(), [&](const std::uint32_t index) {
           return defs[index].kind == DefKind::import;
         }) > 1;
}

// What a table of names or a command line finds: @REGISTRY.register(), @app.command().
bool is_listed(const Module& module, NodeId definition) {
  return has_decorator(module, definition, {"regist", "command", "catalog"});
}

}  // namespace

bool is_experiment(const Module& script) {
  const auto& calls = script.calls();
  const auto& functions = script.functions();
  return std::any_of(calls.begin(), calls.end(),
                     [](const Call& call) { return call.name == "run_commandline"; }) ||
         std::any_of(functions.begin(), functions.end(), [&](const Function& each) {
           return has_decorator(script, each.node, {"automain"});
         });
}

ReachedCode::ReachedCode(const Program& program) : program_(program) {
  for (const FunctionRef& each : program.functions())
    functions_[each.function->name].push_back(each);
  for (const Module* module : program.modules()) {
    for (const Class& cls : module->classes()) classes_[cls.name].push_back({module, &cls});
    list_names(*module);
  }
  start();
  finish();
}

void ReachedCode::finish() {
  while (!pending_.empty()) {
    const FunctionRef next = pending_.back();
    pending_.pop_back();
    run(*next.module, next.function);
  }
}

void ReachedCode::enter_above(Ref node) {
  FunctionRef function = program_.enclosing_function(node);
  for (int depth = 0; function && depth < kMostCallers; ++depth) {
    const auto& sites = program_.call_sites(function);
    const auto handed = program_.handed_on(function);
    if (sites.empty() && handed.empty()) break;
    const FunctionRef caller =
        program_.enclosing_function(sites.empty() ? handed.front() : sites.front().ref());
    if (!caller) break;
    function = caller;
  }
  if (!function) return;
  if (const ClassRef owner = program_.enclosing_class({function.module, function.function->body}))
    make(owner, {});
  reach(function, {});
  finish();
}

void ReachedCode::list_names(const Module& module) {
  const SyntaxTree& tree = module.tree();
  for (NodeId id = 0; id < tree.size(); ++id) {
    if (tree[id].kind != Kind::identifier || !is_read(tree, id)) continue;
    names_[{&module, module.function_around(id)}].push_back(
        {id, tree[id].field == Field::attribute});
  }
  for (const Call& call : module.calls())  // eval(name)(options), MODELS[name](options)
    if (call.function != kNoNode &&
        (tree[call.function].kind == Kind::call || tree[call.function].kind == Kind::subscript))
      unnamed_calls_[{&module, module.function_around(call.node)}].push_back({&module, &call});
}

// A file that is run or imported runs at its own level, but not under the guard of another script.
void ReachedCode::start() {
  for (const Module* module : program_.modules()) {
    const bool is_root = module == &program_.root();
    const bool is_used = !is_root || module->has_main_guard();  // what it lists may be looked up
    for (const Class& cls : module->classes())
      if (is_used && is_listed(*module, cls.node)) make({module, &cls}, {});
    for (const Function& function : module->functions())
      if (is_entry(*module, function) || (is_used && is_listed(*module, function.node)))
        reach({module, &function}, {});
    run(*module, nullptr);
  }
}

// Nothing of the file has to call it: main() of a console script, @ex.automain of sacred's.
bool ReachedCode::is_entry(const Module& module, const Function& function) const {
  if (has_decorator(module, function.node, {"automain"})) return true;
  if (&module != &program_.root()) return false;
  if (is_experiment(module) && has_decorator(module, function.node, {"main", "command"}))
    return true;
  if (module.has_main_guard() || function.owner_class != kNoNode) return false;
  return function.name == "main" || pitfalls::facts::is_command(program_, {&module, &function});
}

void ReachedCode::run(const Module& module, const Function* function) {
  const auto is_run = [&](NodeId node) {
    return function != nullptr || &module == &program_.root() || !module.under_main_guard(node);
  };
  if (const auto found = names_.find({&module, function}); found != names_.end())
    for (const Place& place : found->second)
      if (is_run(place.id)) follow({&module, place.id}, place.is_member);
  if (const auto found = unnamed_calls_.find({&module, function}); found != unnamed_calls_.end())
    for (const CallRef& call : found->second)
      if (is_run(call.call->node))
        for (const ClassRef& cls : program_.classes_of_call(call)) make(cls, call.ref());
}

void ReachedCode::follow(Ref name, bool is_member) {
  const SyntaxTree& tree = name.module->tree();
  const NodeId whole = is_member ? tree[name.node].parent : name.node;
  if (tree[whole].field == Field::function) {
    const CallRef call = program_.as_call(name.with(tree[whole].parent));
    if (call && call.call->function == whole && follow_call(name, call)) return;
  }
  find_all(name, name.text(), is_member);
  // begin for `from lib import work as begin`.
  const std::string_view path = is_member ? "" : name.module->import_path(name.text());
  const std::string_view own = path.substr(path.rfind('.') + 1);
  if (!own.empty() && own != name.text()) find_all(name, own, is_member);
}

void ReachedCode::find_all(Ref name, std::string_view word, bool is_member) {
  if (const auto classes = classes_.find(word); classes != classes_.end())
    for (const ClassRef& cls : classes->second) make(cls, name);
  const auto functions = functions_.find(word);
  if (functions == functions_.end()) return;
  for (const FunctionRef& function : functions->second) {
    const bool is_method = function.function->owner_class != kNoNode;
    if (!is_method && !may_mean(name, is_member, function)) continue;
    if (!is_method || (is_member && is_made(function)))
      reach(function, name);
    else if (is_member)
      waiting_.emplace_back(function, name);
  }
}

// A function of another file has to come by an import: work for `from lib import work`, lib.work
// for `import lib`. A variable of its name is none, nor is a method of some object.
bool ReachedCode::may_mean(Ref name, bool is_member, FunctionRef function) const {
  if (finds_any_ || (!is_member && function.module == name.module)) return true;
  if (!is_member && name.module->has_star_imports()) return true;
  const SyntaxTree& tree = name.module->tree();
  NodeId first = is_member ? tree[name.node].parent : name.node;
  while (tree[first].kind == Kind::attribute) first = tree.child(first, Field::object);
  const auto& defs = name.module->defs();
  const auto indices = name.module->defs_of(tree.text(first), false);
  return std::any_of(indices.begin(), indices.end(), [&](const std::uint32_t index) {
    return defs[index].kind == DefKind::import;
  });
}

// False where the call may run anything of its name.
bool ReachedCode::follow_call(Ref name, const CallRef& call) {
  follow_lookup(call);
  if (const auto made = program_.classes_of_call(call); !made.empty()) {
    for (const ClassRef& cls : made) make(cls, name);
    return !is_imported_twice(call);
  }
  const auto callees = program_.callees(call);
  if (callees.empty()) {
    const std::string path = name.module->qualified(call.call->function);
    return path.find('.') != std::string::npos && is_external_import(path);
  }
  for (const FunctionRef& callee : callees) {
    reach(callee, name);
    const ClassRef owner = program_.enclosing_class({callee.module, callee.function->body});
    if (!owner) continue;
    for (const ClassRef& derived : program_.derived_of(owner))
      if (const Function* own = derived.module->method(*derived.cls, callee.function->name))
        reach({derived.module, own}, name);
  }
  return true;
}

// A class that a text names may be any: objects have the methods of all.
void ReachedCode::find_any_class() {
  finds_any_ = true;
  const auto waiting = std::exchange(waiting_, {});
  for (const auto& [method, from] : waiting) reach(method, from);
}

void ReachedCode::offer_functions(const Module& module, Ref from) {
  for (const Function& function : module.functions())
    if (function.owner_class == kNoNode) reach({&module, &function}, from);
}

// fire.Fire(Runner) and fire.Fire(Runner()): the command line names one of its methods.
void ReachedCode::offer_methods(const CallRef& fire) {
  const Ref component = fire.argument(0, "component");
  if (!component) return;
  const CallRef made = program_.as_call(component);
  for (const Class& cls : fire.module->classes()) {
    if (component.text() != cls.name && !(made && program_.class_of_call(made).cls == &cls))
      continue;
    make({fire.module, &cls}, component);
    for (const Function& method : fire.module->functions())
      if (method.owner_class == cls.node && !method.name.starts_with("_"))
        reach({fire.module, &method}, component);
  }
}

// getattr(models, name)(...) may run whatever the file offers, getattr(self, name)() each method.
void ReachedCode::follow_lookup(const CallRef& call) {
  constexpr std::string_view kFinders[] = {"import_module", "__import__", "globals",
                                           "exec",          "locate",     "instantiate"};
  const bool evaluates_text =
      call.call->name == "eval" && !call.receiver() && call.positional(0) && !program_.callee(call);
  if (evaluates_text ||
      std::find(std::begin(kFinders), std::end(kFinders), call.call->name) != std::end(kFinders))
    find_any_class();
  // fire.Fire() and globals()[name]() offer all functions of the file.
  if (call.call->name == "globals" || (call.call->name == "Fire" && !call.argument(0, "component")))
    offer_functions(*call.module, call.ref());
  if (call.call->name == "Fire") offer_methods(call);
  if (call.call->name != "getattr" || !call.positional(1) || program_.string(call.positional(1)))
    return;
  const Ref object = call.positional(0);
  if (const ClassRef owner = program_.enclosing_class(call.ref()); owner && object.text() == "self")
    for (const FunctionRef& each : program_.functions())
      if (program_.enclosing_class({each.module, each.function->body}) == owner)
        reach(each, object);
  if (object.kind() != Kind::identifier || object.module->import_path(object.text()).empty())
    return;
  const std::string_view path = object.module->import_path(object.text());
  for (const Module* module : program_.modules()) {
    const std::string& dotted = module->dotted_name();
    const std::string_view last = std::string_view(path).substr(path.rfind('.') + 1);
    if (dotted != path && !dotted.ends_with("." + std::string(last)) && dotted != last) continue;
    for (const Class& cls : module->classes()) make({module, &cls}, object);
    offer_functions(*module, object);
  }
}

void ReachedCode::reach(FunctionRef function, Ref from) {
  if (reached_.emplace(function.function, from).second) pending_.push_back(function);
}

// What a class that the program cannot see may call on itself, and what Python and torch call.
bool ReachedCode::is_run_by_others(ClassRef cls, const Function& method) const {
  if (method.name.starts_with("__") || method.name == "forward") return true;
  const auto& line = program_.lineage(cls);
  return std::any_of(line.begin(), line.end(), [&](const ClassRef& each) {
    const auto& bases = each.cls->bases;
    for (std::size_t index = 0; index < bases.size(); ++index) {
      const std::string_view text = each.module->text(bases[index]);
      const std::string_view last = text.substr(text.rfind('.') + 1);
      if (!is_plain_base(*each.module, *each.cls, index) && !classes_.contains(last)) return true;
    }
    return false;
  });
}

bool ReachedCode::is_made(FunctionRef method) const {
  const Class* owner = method.module->class_at(method.function->owner_class);
  if (finds_any_) return true;
  if (owner == nullptr || made_.contains(owner)) return true;
  const auto& derived = program_.derived_of({method.module, owner});
  return std::any_of(derived.begin(), derived.end(),
                     [&](const ClassRef& each) { return made_.contains(each.cls); });
}

void ReachedCode::make(ClassRef cls, Ref from) {
  for (const ClassRef& each : program_.lineage(cls)) {
    if (!made_.insert(each.cls).second) continue;
    for (const Function& method : each.module->functions())
      if (method.owner_class == each.cls->node && is_run_by_others(cls, method))
        reach({each.module, &method}, from);
  }
  std::erase_if(waiting_, [&](const auto& waits) {
    if (!is_made(waits.first)) return false;
    reach(waits.first, waits.second);
    return true;
  });
}

bool ReachedCode::has(Ref node) const {
  const Function* function = node.module->function_around(node.node);
  if (function != nullptr) return reached_.contains(function);
  return node.module == &program_.root() || !node.module->under_main_guard(node.node);
}

bool ReachedCode::comes_by(Ref node) const {
  return node.module == &program_.root() || is_run(node);
}

bool ReachedCode::is_run(Ref node) const {
  return (node.module == &program_.root() || has(node)) &&
         pitfalls::facts::is_reachable(program_, node);
}

std::vector<Ref> ReachedCode::way_to(Ref node) const {
  std::vector<Ref> out;
  std::set<const Function*> seen;
  while (node) {
    const Function* function = node.module->function_around(node.node);
    const auto found = reached_.find(function);
    if (found == reached_.end() || !seen.insert(function).second) break;
    node = found->second;
    if (node) out.push_back(node);
  }
  return out;
}

}  // namespace bench::diagnose
