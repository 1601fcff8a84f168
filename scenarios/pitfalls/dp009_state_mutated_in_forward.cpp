#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Def;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Wrapper;

namespace {

// What objects are called that are modules, where nothing else says so.
constexpr std::string_view kNamesOfModules[] = {"model", "net",     "module",   "layer",  "block",
                                                "encod", "decod",   "backbone", "head",   "critic",
                                                "actor", "generat", "discrim",  "student"};

bool is_buffer(const Program& program, std::string_view name) {
  for (const CallRef& call : program.calls_named("register_buffer"))
    if (program.string(call.positional(0)).value_or("") == name) return true;
  return false;
}

// self.begin(x) of the caller above the node, which stores the value for the whole pass.
bool is_stored_by_call_above(const Program& program, const FunctionRef& caller,
                             std::string_view name, NodeId node) {
  const auto& defs = caller.module->defs_of(name, true);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Def& def = caller.module->defs()[index];
    const FunctionRef storing = program.enclosing_function({caller.module, def.target});
    if (!storing || def.kind == DefKind::augmented || storing == caller ||
        !is_unconditional(program, {caller.module, def.target}))
      return false;
    const auto& sites = program.call_sites(storing);
    return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
      return program.enclosing_function(site.ref()) == caller && site.call->node < node &&
             is_unconditional(program, site.ref());
    });
  });
}

// Every method of the pass that calls the reader stores the value above the call.
bool is_stored_by_callers(const Program& program, const std::vector<FunctionRef>& pass,
                          const FunctionRef& reader, std::string_view name) {
  bool called = false;
  for (const CallRef& site : program.call_sites(reader)) {
    const FunctionRef caller = program.enclosing_function(site.ref());
    if (!caller || std::find(pass.begin(), pass.end(), caller) == pass.end()) continue;
    const auto& defs = caller.module->defs_of(name, true);
    called = true;
    if (std::none_of(defs.begin(), defs.end(),
                     [&](std::uint32_t index) {
                       const NodeId target = caller.module->defs()[index].target;
                       return caller.module->tree().contains(caller.function->node, target) &&
                              target < site.call->node;
                     }) &&
        !is_stored_by_call_above(program, caller, name, site.call->node))
      return false;
  }
  return called;
}

// The object may be the module that forward stores into: the wrapper's module, an object of the
// class, an item of modules(), or, where its class is not known, what is named like a model.
bool may_be_module(const Program& program, Ref object, ClassRef owner) {
  if (object.text().starts_with("super(")) return true;
  if (object.text().ends_with(".module") || facts::contains(object.text(), ".module.")) return true;
  if (program.is_wrapped(object, Wrapper::data_parallel)) return true;
  if (const ClassRef known = program.class_of(object))
    return known == owner || program.base_of(known) == owner;
  if (!diagnose::stands_for_object(object)) return false;
  const auto& sources = program.sources(object);
  if (std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
        return source.how == diagnose::Source::How::loop_item &&
               (facts::contains(source.ref.text(), "modules(") ||
                facts::contains(source.ref.text(), "children("));
      }))
    return true;
  const std::string text = facts::lowered(object.text());
  const std::string name = text.substr(text.rfind('.') + 1);
  return std::any_of(std::begin(kNamesOfModules), std::end(kNamesOfModules),
                     [&](std::string_view word) { return facts::contains(name, word); });
}

// Methods that nothing calls by name read nothing; __init__ reads what it stored itself.
bool may_read_later(const Program& program, Ref read) {
  const FunctionRef reader = program.enclosing_function(read);
  if (!reader || reader.function->owner_class == diagnose::kNoNode) return true;
  const std::string_view name = reader.function->name;
  if (name == "__init__") return false;
  return name.starts_with("__") || name == "forward" || !program.calls_named(name).empty() ||
         !program.handed_on(reader).empty();
}

// self.info = {} above the node in the function, under no test: what is read there is of this pass.
bool is_begun_above(const Program& program, const FunctionRef& function, std::string_view name,
                    NodeId node) {
  const auto& defs = function.module->defs_of(name, true);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Def& def = function.module->defs()[index];
    const Ref target{function.module, def.target};
    return def.kind == DefKind::assign && def.target < node &&
           program.enclosing_function(target) == function && is_unconditional(program, target) &&
           program.loops_around(target).empty();
  });
}

// Some code outside the forward pass, or in it before the store, reads the attribute.
bool is_read_elsewhere(const Program& program, const std::vector<FunctionRef>& pass,
                       const FunctionRef& storing, const Def& def) {
  // A method that stores the value anew before it reads it does not ask for an older one.
  const auto stores_first = [&](Ref read) {
    const FunctionRef reader = program.enclosing_function(read);
    if (!reader) return false;
    if (std::find(pass.begin(), pass.end(), reader) != pass.end())
      return !program.runs_before(read, {storing.module, def.target}) ||
             is_stored_by_callers(program, pass, reader, def.name);
    const auto sites = program.call_sites(storing);
    return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
      return program.enclosing_function(site.ref()) == reader && site.call->node < read.node;
    });
  };
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (NodeId id = 0; id < tree.size(); ++id) {
      if (tree[id].kind != Kind::attribute || id == def.target) continue;
      if (tree.text(tree.child(id, Field::attribute)) != def.name) continue;
      // self.x of another class, and x.shape of a tensor, are other attributes.
      const ClassRef owner = program.enclosing_class({storing.module, def.target});
      if (tree.text(tree.child(id, Field::object)) == "self") {
        const ClassRef reader = program.enclosing_class({module, id});
        if (!(reader == owner) && !(program.base_of(reader) == owner)) continue;
        if (!may_read_later(program, {module, id})) continue;
      } else if (!may_be_module(program, {module, tree.child(id, Field::object)}, owner)) {
        continue;
      }
      const auto& stores = module->defs_of(def.name, true);
      if (std::any_of(stores.begin(), stores.end(), [&](std::uint32_t index) {
            const Def& store = module->defs()[index];
            return store.target == id && store.kind != DefKind::augmented;
          }))
        continue;  // also self.height in self.height, self.width = ...
      const bool inside = module == storing.module && tree.contains(storing.function->node, id);
      if (inside ? id < def.target && !is_stored_by_callers(program, pass, storing, def.name) &&
                       !is_begun_above(program, storing, def.name, id)
                 : !stores_first({module, id}))
        return true;
    }
  }
  return false;
}

// A method beside the pass stores the attribute too, and parts of the model call it: the state of a
// sequence that begins anew within each pass, as that of a spiking neuron.
bool is_begun_anew(const Program& program, const std::vector<FunctionRef>& pass,
                   const ClassRef& cls, std::string_view name) {
  const Module& module = *cls.module;
  const std::vector<ClassRef> bases = program.bases_of(cls);
  for (const std::uint32_t index : module.defs_of(name, true)) {
    const Def& def = module.defs()[index];
    const ClassRef owner = program.enclosing_class({&module, def.target});
    const bool own = owner == cls || std::find(bases.begin(), bases.end(), owner) != bases.end();
    if (def.kind == DefKind::augmented || !own) continue;
    const FunctionRef method = program.enclosing_function({&module, def.target});
    if (!method || method.function->name == "__init__" || method.function->name == "forward")
      continue;
    for (const CallRef& call : program.calls_named(method.function->name)) {
      const FunctionRef caller = program.enclosing_function(call.ref());
      if (caller && program.enclosing_class(call.ref()) && call.receiver().text() != "self" &&
          std::find(pass.begin(), pass.end(), caller) == pass.end())
        return true;
    }
  }
  return false;
}

// if self.grid is None: self.grid = ..., self.size = ...: what the branch stores asks for itself,
// or for what is stored beside it.
bool asks_for_own_store(const Program& program, const FunctionRef& storing,
                        const diagnose::Guard& guard) {
  const Ref condition = guard.condition;
  if (facts::contains(condition.text(), "hasattr")) return true;
  const Module& module = *storing.module;
  for (NodeId id = condition.node; id < module.tree()[condition.node].last; ++id) {
    const Ref asked = condition.with(id);
    if (asked.kind() != Kind::attribute || asked.child(Field::object).text() != "self") continue;
    for (const std::uint32_t index : module.defs_of(asked.child(Field::attribute).text(), true)) {
      const Ref stored{&module, module.defs()[index].target};
      if (stored.text() != asked.text() || !(program.enclosing_function(stored) == storing))
        continue;
      const auto around = program.guards(stored);
      if (std::find(around.begin(), around.end(), guard) != around.end()) return true;
    }
  }
  return false;
}

void check_forward_stores(const Program& program, const std::vector<FunctionRef>& pass,
                          const FunctionRef& storing, Report& report) {
  const Module& module = *storing.module;
  for (const Def& def : module.defs()) {
    if (!def.is_attribute || !module.tree().contains(storing.function->node, def.target)) continue;
    if (module.text(module.tree().child(def.target, Field::object)) != "self") continue;
    const bool augmented = def.kind == DefKind::augmented;
    // if self.grid is None: self.grid = ... is made anew on each replica, to the same value.
    const auto guards = program.guards({&module, def.target});
    const std::string own = "self." + std::string(def.name);
    if (!augmented && std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
          return facts::contains(guard.condition.text(), own) ||
                 asks_for_own_store(program, storing, guard);
        }))
      continue;
    if (augmented && is_buffer(program, def.name)) continue;
    if (is_begun_anew(program, pass, program.enclosing_class({&module, def.target}), def.name))
      continue;
    // self.steps += 1 of what the pass has begun itself: a value of this pass alone.
    const bool counts_on = augmented && !is_stored_by_callers(program, pass, storing, def.name);
    if (!counts_on && !is_read_elsewhere(program, pass, storing, def)) continue;
    Finding& finding =
        report.at({&module, def.target}, Confidence::likely,
                  "forward stores self." + std::string(def.name) +
                      ": DataParallel runs it on a copy that is thrown away, so the value is lost");
    finding.help =
        "Return the value, or keep it in a registered buffer that is changed in place; "
        "or use DistributedDataParallel.";
  }
}

// A container that lives as long as the module: self.xs = [] in __init__ or in the class itself.
// Replicas take over the reference to it.
bool is_list_of_module(const Program& program, ClassRef cls, std::string_view name) {
  const auto makes_list = [&](const ClassRef& owner, const Def& def) {
    const Ref value{owner.module, def.value};
    if (!value || !owner.module->tree().contains(owner.cls->node, def.target)) return false;
    const FunctionRef method = program.enclosing_function({owner.module, def.target});
    if (method && method.function->name == "forward") return false;
    const CallRef made = program.as_call(value);
    return value.kind() == Kind::list || value.kind() == Kind::comprehension ||
           (value.kind() == Kind::binary && value.text().starts_with("[")) ||
           (made && (made.call->name == "list" || made.call->name == "deque"));
  };
  for (const ClassRef& owner : program.lineage(cls))
    for (const bool attribute : {true, false})
      for (const std::uint32_t index : owner.module->defs_of(name, attribute))
        if (makes_list(owner, owner.module->defs()[index])) return true;
  return false;
}

// self.xs = [] above, in the same pass: the store lands in the replica, which then has a list of
// its own.
bool is_stored_above(const Program& program, const std::vector<FunctionRef>& pass,
                     const CallRef& append, std::string_view name) {
  return std::any_of(pass.begin(), pass.end(), [&](const FunctionRef& method) {
    const auto& defs = method.module->defs_of(name, true);
    return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
      const Def& def = method.module->defs()[index];
      return def.kind != DefKind::augmented &&
             method.module->tree().contains(method.function->node, def.target) &&
             program.runs_before({method.module, def.target}, append.ref());
    });
  });
}

void check_appends(const Program& program, const ClassRef& cls,
                   const std::vector<FunctionRef>& pass, const FunctionRef& method,
                   Report& report) {
  constexpr std::string_view kSelf = "self.";
  for (const CallRef& call : facts::calls_in({method.module, method.function->body})) {
    if (call.call->name != "append" && call.call->name != "extend") continue;
    const Ref list = call.receiver();
    if (!list || !list.text().starts_with(kSelf)) continue;
    const std::string_view name = list.text().substr(kSelf.size());
    if (is_begun_anew(program, pass, program.enclosing_class(call.ref()), name) ||
        is_stored_above(program, pass, call, name))
      continue;
    Finding& finding =
        report.at(call.ref(), Confidence::likely,
                  "forward appends to " + std::string(list.text()) +
                      ": DataParallel's replicas share the list and change it from several "
                      "threads");
    if (!is_list_of_module(program, cls, name)) tell_as_note(finding);
    finding.help = "Return the value and collect it outside of forward.";
  }
}

}  // namespace

void check_state_mutated_in_forward(const Program& program, Report& report) {
  if (!program.has_data_parallel()) return;
  for (const ClassRef& cls : facts::wrapped_classes(program, Wrapper::data_parallel)) {
    const std::vector<FunctionRef> pass = facts::forward_methods(program, cls);
    for (const FunctionRef& method : pass) {
      check_forward_stores(program, pass, method, report);
      check_appends(program, cls, pass, method, report);
    }
  }
}

}  // namespace bench::pitfalls
