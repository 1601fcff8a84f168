// Which local function or class a call means, and from where a local function is called.
#include "diagnose/model/binding.hpp"
#include "diagnose/model/made_at.hpp"
#include "diagnose/model/role_names.hpp"
#include "diagnose/model/usual_names.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// saver.save_checkpoint() of an object that cannot be followed is the method of that name where the
// program has one. A name of one word, or one that library objects have, says too little.
bool tells_its_class(std::string_view name) {
  static constexpr std::string_view kOfLibraries[] = {
      "state_dict",   "load_state_dict", "zero_grad",       "named_parameters", "set_epoch",
      "get_lr",       "get_last_lr",     "save_pretrained", "from_pretrained",  "no_sync",
      "train_step",   "training_step",   "validation_step", "requires_grad_",   "all_reduce",
      "all_gather",   "add_scalar",      "add_image",       "set_description",  "set_postfix",
      "init_weights", "add_argument",    "parse_args",      "get_world_size",   "get_rank"};
  return name.find('_', 1) < name.size() - 1 &&
         std::find(std::begin(kOfLibraries), std::end(kOfLibraries), name) ==
             std::end(kOfLibraries);
}

// DataLoaderX(data, sampler=...), MultiEpochsDataLoader(...): a class of a file that is not there,
// which takes what a DataLoader takes.
bool looks_like_loader(const CallRef& call) {
  const std::string_view name = call.call->name;
  return name.find("DataLoader") != std::string_view::npos && name.front() >= 'A' &&
         name.front() <= 'Z' && (call.keyword("sampler") || call.keyword("batch_sampler"));
}

// get_optimizer(config, net), get_scheduler(config, optimizer).
bool is_named_for(const CallRef& call, bool optimizes) {
  const std::string_view name = call.call->name;
  const std::string_view settings =
      makes_from_settings(name) && call.positional(0) ? last_word(call.positional(0)) : "";
  const std::string_view given = call.ref().child(Field::arguments).text();
  if (optimizes) return names_optimizer_maker(name, given) || names_optimizer(settings);
  return names_scheduler_maker(name, given) ||
         (names_scheduler(settings) && is_of_learning_rates(settings, given));
}

// C(...) of a class that derives from DistributedSampler, DataLoader, Accelerator or Trainer, and
// functions out of sight by the usual names of what gives a loader, an optimizer or a scheduler.
bool makes_kind_of(const Program& program, CallRef call, Api api) {
  if ((api == Api::accelerator || api == Api::hf_trainer) && call.call->api == Api::none) {
    const auto made = program.calls(api);
    return std::any_of(made.begin(), made.end(),
                       [&](const CallRef& each) { return each.ref() == call.ref(); });
  }
  if (api == Api::optimizer || api == Api::scheduler)
    return call.call->api == Api::none && is_named_for(call, api == Api::optimizer) &&
           !program.callee(call);
  const bool is_asked = api == Api::distributed_sampler || api == Api::data_loader;
  if (!is_asked || call.call->api != Api::none) return false;
  const ClassRef cls = program.class_of_call(call);
  if (!cls) return api == Api::data_loader && looks_like_loader(call) && !program.callee(call);
  return program.derives_from(cls, api);
}

}  // namespace

CallRef Program::as_call(Ref node) const {
  if (!node || node.kind() != Kind::call) return {};
  const Call* call = node.module->call_at(node.node);
  if (call == nullptr) return {};
  const auto known = kinds_.empty() ? kinds_.end() : kinds_.find(call);
  return {node.module, known == kinds_.end() ? call : known->second};
}

const Module* Program::import_target(const Module& from, std::string_view path) const {
  const auto targets = input_.import_targets.find(&from);
  if (targets == input_.import_targets.end()) return nullptr;
  const auto found = targets->second.find(path);
  return found == targets->second.end() ? nullptr : found->second;
}

ClassRef Program::enclosing_class(Ref node) const {
  if (!node) return {};
  for (NodeId at = node.node; at != kNoNode && at != 0; at = (*node.module)[at].parent)
    if ((*node.module)[at].kind == Kind::class_definition)
      return {node.module, node.module->class_at(at)};
  return {};
}

// @property, @cached_property
bool Program::is_property(FunctionRef function) const {
  const SyntaxTree& tree = function.module->tree();
  const NodeId parent = tree[function.function->node].parent;
  if (parent == kNoNode || tree[parent].kind != Kind::decorated) return false;
  for (NodeId at = tree[parent].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::decorator && tree.text(at).ends_with("property")) return true;
  return false;
}

std::vector<CallRef> Program::calls_that(Module::NameTest says) const {
  std::vector<CallRef> out;
  for (const Module* module : modules())
    for (const std::uint32_t index : module->calls_that(says))
      out.push_back({module, &module->calls()[index]});
  return out;
}

FunctionRef Program::enclosing_function(Ref node) const {
  if (!node) return {};
  const Function* const found = node.module->function_around(node.node);
  return found == nullptr ? FunctionRef{} : FunctionRef{node.module, found};
}

ClassRef Program::class_of_call(CallRef call) const {
  if (!call || call.call->function == kNoNode) return {};
  const Ref function{call.module, call.call->function};
  const bool is_named = function.kind() == Kind::identifier || function.kind() == Kind::attribute;
  const bool may_be_picked =
      input_.follows_look_ups &&
      (is_named || function.kind() == Kind::call || function.kind() == Kind::subscript);
  if (!is_named && !may_be_picked) return {};
  // Methods of objects are resolved elsewhere; only imported or local class names matter here.
  if (function.kind() == Kind::attribute && !may_be_picked &&
      call.module->qualified(function.node).empty())
    return {};
  for (const Source& source : sources(function))
    if (source.ref.kind() == Kind::class_definition)
      return {source.ref.module, source.ref.module->class_at(source.ref.node)};
  return {};
}

ClassRef Program::class_of(Ref expression) const {
  if (!expression) return {};
  if (expression.text() == "self") return enclosing_class(expression);
  for (const Source& source : module_sources(expression)) {
    if (source.how == Source::How::parameter && source.ref.text() == "self")
      return enclosing_class(source.ref);  // an object that handed itself on
    if (source.how != Source::How::value) continue;
    if (const ClassRef found = class_of_call(as_call(source.ref))) return found;
  }
  return class_inside(expression);
}

// The model in net.module of net = DDP(Net()).
ClassRef Program::class_inside(Ref expression) const {
  if (expression.kind() != Kind::attribute || expression.child(Field::attribute).text() != "module")
    return {};
  const Wrap* wrap = wrap_of(expression.child(Field::object));
  return wrap != nullptr && wrap->classes.size() == 1 ? wrap->classes.front() : ClassRef{};
}

// state.model(x) of a @property calls what the property gives.
FunctionRef Program::unless_property(FunctionRef function) const {
  return function && is_property(function) ? FunctionRef{} : function;
}

// Remembered where no value is being looked for: meanwhile less may be known of it.
FunctionRef Program::callee(CallRef call) const {
  if (!call || call.call->function == kNoNode) return {};
  if (resolving_ > 0) return find_callee(call);
  if (const auto known = callees_.find(call.call); known != callees_.end()) return known->second;
  const FunctionRef found = find_callee(call);
  if (!half_known_.is_cut || half_known_.forgets > HalfKnown::kForgets)
    callees_.emplace(call.call, found);
  return found;
}

FunctionRef Program::find_callee(CallRef call) const {
  const Ref function{call.module, call.call->function};
  const bool named = functions_by_name_.contains(call.call->name);
  if (function.kind() == Kind::attribute) {
    const Ref object = function.child(Field::object);
    if (object.kind() == Kind::call && object.text().starts_with("super("))
      return named ? inherited_method(enclosing_class(function), call.call->name) : FunctionRef{};
    if (named && object.text() == "self")
      if (const FunctionRef found = method_on_self(enclosing_class(function), call.call->name))
        return unless_property(found);
    if (call.module->qualified(function.node).empty()) {
      if (!named) return {};
      if (const ClassRef owner = class_of(object)) {
        FunctionRef found = method(owner, call.call->name);
        if (!found && input_.follows_look_ups)  // of another one that a run may pick
          for (const ClassRef& other : classes_of(object))
            if (found = method(other, call.call->name); found) break;
        return unless_property(found);
      }
      // model.module.loss(x) goes round the wrapper, which rules want to see as it is.
      if (object.text().ends_with(".module")) return {};
      const auto& candidates = functions_by_name_.at(call.call->name);
      const bool only_one = candidates.size() == 1 &&
                            candidates.front().function->owner_class != kNoNode &&
                            tells_its_class(call.call->name);
      return only_one ? candidates.front() : FunctionRef{};
    }
  } else if (function.kind() != Kind::identifier) {
    return {};
  }
  for (const Source& source : sources(function)) {
    if (source.how != Source::How::value) continue;
    if (source.ref.kind() == Kind::function)
      return {source.ref.module, source.ref.module->function_at(source.ref.node)};
    if (source.ref.kind() == Kind::lambda) continue;
    if (source.ref.kind() != Kind::class_definition) continue;
    const ClassRef made{source.ref.module, source.ref.module->class_at(source.ref.node)};
    const FunctionRef maker = method(made, "__init__");
    return maker ? maker : method(made, "__post_init__");
  }
  return {};
}

// main(args) below `from train import main` and `from test import main` of two branches: the
// function, or the class that it makes an object of, is one of what the name is given.
bool Program::is_imported_as(CallRef call, FunctionRef function) const {
  const Ref name{call.module, call.call->function};
  const bool is_called_so =
      function.function->owner_class == kNoNode || function.function->makes_object();
  if (name.kind() != Kind::identifier || !is_called_so || !can_bind(call, function)) return false;
  const auto& indices = call.module->defs_of(name.text(), false);
  const auto imports = std::count_if(indices.begin(), indices.end(), [&](std::uint32_t index) {
    return call.module->defs()[index].kind == DefKind::import;
  });
  if (imports < 2) return false;
  const NodeId owner = function.function->owner_class;
  const Ref meant{function.module, owner == kNoNode ? function.function->node : owner};
  const auto& given = sources(name);
  return std::any_of(given.begin(), given.end(),
                     [&](const Source& source) { return source.ref == meant; });
}

void Program::end_search(FunctionRef function) const {
  half_known_.searches.erase(function.function);
  if (!half_known_.searches.empty()) {
    if (half_known_.is_cut) half_known_.sites.push_back(function.function);
    return;
  }
  if (half_known_.is_cut) ++half_known_.forgets;
  if (half_known_.forgets <= HalfKnown::kForgets) {
    for (const auto& value : half_known_.values)
      half_known_.old_values.push_back(resolved_.extract(value));
    for (const Function* each : half_known_.sites)
      half_known_.old_sites.push_back(call_sites_.extract(each));
  }
  half_known_.values.clear();
  half_known_.sites.clear();
  half_known_.is_cut = false;
}

const std::vector<CallRef>& Program::call_sites(FunctionRef function) const {
  const auto known = call_sites_.find(function.function);
  if (known != call_sites_.end()) {
    if (half_known_.searches.contains(function.function)) half_known_.is_cut = true;
    return known->second;
  }
  std::vector<CallRef>& sites = call_sites_[function.function];  // in a cycle there are none yet
  half_known_.searches.insert(function.function);
  std::vector<CallRef> found;
  std::string_view name = function.function->name;
  if (function.function->makes_object() && function.function->owner_class != kNoNode)
    name = function.module->class_at(function.function->owner_class)->name;
  const bool is_method = function.function->owner_class != kNoNode;
  // Where the name stands for one function only, a call that does not fit it calls nothing.
  const auto may_call_it = [&](const CallRef& call) {
    if (callee(call) == function) return true;
    if (!input_.follows_look_ups) return false;
    const auto all = callees(call);
    return std::find(all.begin(), all.end(), function) != all.end();
  };
  const auto calls_it = [&](const CallRef& call) {
    // The method of some object, whatever object that is.
    if (!is_method && call.receiver() && call.call->path.empty()) return false;
    if (!may_call_it(call)) return is_imported_as(call, function);
    // What the fields of a data class are given is no argument of its method.
    if (function.function->name == "__post_init__") return true;
    return can_bind(call, function) || sources({call.module, call.call->function}).size() > 1;
  };
  for (const CallRef& call : calls_named(name)) {
    const bool on_self = is_method && call.receiver().text() == "self";
    if (calls_it(call) || (on_self && overrides(function, enclosing_class(call.ref()))))
      found.push_back(call);
  }
  if (name != function.function->name) {
    for (const CallRef& call : calls_named(function.function->name))  // super().__init__(...)
      if (callee(call) == function) found.push_back(call);
    add_picks(function, found);
  }
  sites = std::move(found);
  end_search(function);
  return sites;
}

// Where a run may pick a class that has the constructor.
void Program::add_picks(FunctionRef constructor, std::vector<CallRef>& sites) const {
  const ClassRef owner{constructor.module,
                       constructor.module->class_at(constructor.function->owner_class)};
  std::vector<ClassRef> classes = picks_.empty() ? std::vector<ClassRef>{} : derived_of(owner);
  classes.push_back(owner);
  for (const ClassRef& cls : classes)
    if (method(cls, constructor.function->name) == constructor)
      for (const CallRef& pick : picks_of(cls))
        if (std::none_of(sites.begin(), sites.end(),
                         [&](const CallRef& each) { return each.call == pick.call; }))
          sites.push_back(pick);
}

std::string Program::qualified(Ref expression) const {
  return expression ? expression.module->qualified(expression.node) : std::string{};
}

CallRef Program::origin(Ref expression, Api api) const {
  for (const Source& source : module_sources(expression)) {
    if (source.how == Source::How::loop_item) continue;
    const CallRef call = as_call(source.ref);
    if (call && (call.call->api == api || makes_kind_of(*this, call, api))) return call;
  }
  return {};
}

bool Program::comes_from(Ref expression, Api api) const {
  return static_cast<bool>(origin(expression, api));
}

namespace {

// The target that the item of the tuple goes to, where there are as many of both.
NodeId same_place(const Module& module, NodeId tuple, NodeId item, NodeId targets) {
  const SyntaxTree& tree = module.tree();
  if (tree[targets].kind != Kind::tuple || tree.child_count(targets) != tree.child_count(tuple))
    return kNoNode;
  NodeId target = tree[targets].first_child;
  for (NodeId at = tree[tuple].first_child; at != item; at = tree[at].next_sibling)
    target = tree[target].next_sibling;
  return target;
}

}  // namespace

std::string_view Program::assigned_name(Ref call) const {
  // return DDP(net): the name that the caller gives it.
  const NodeId statement = (*call.module)[call.node].parent;
  if (statement != kNoNode && (*call.module)[statement].kind == Kind::return_statement)
    if (const CallRef made = as_call(call)) call = made_at(*this, made).ref();
  const Module& module = *call.module;
  NodeId at = call.node;
  NodeId parent = module[at].parent;
  // Through x.to(d), DDP(x) if flag else x, and tuples.
  NodeId item = kNoNode;  // of a pair: model, loader = DDP(net), DataLoader(data)
  while (parent != kNoNode && module[parent].kind != Kind::assignment) {
    const Kind kind = module[parent].kind;
    if (kind == Kind::tuple && item == kNoNode && module[parent].field == Field::right)
      item = at;
    else if (kind != Kind::conditional && kind != Kind::attribute && kind != Kind::call)
      return {};
    at = parent;
    parent = module[at].parent;
  }
  if (parent == kNoNode || module[at].field != Field::right) return {};
  NodeId left = module.tree().child(parent, Field::left);
  if (item != kNoNode) left = same_place(module, at, item, left);
  if (left == kNoNode) return {};
  const Kind kind = module[left].kind;
  if (kind != Kind::identifier && kind != Kind::attribute) return {};
  return module.text(left);
}

bool Program::same_variable(Ref a, Ref b) const {
  if (!a || !b || a.text() != b.text()) return false;
  if (a.module != b.module) return false;
  if (a.kind() == Kind::attribute && a.text().starts_with("self."))
    return enclosing_class(a) == enclosing_class(b);
  return a.module->function_of(a.node) == b.module->function_of(b.node);
}

}  // namespace bench::diagnose
