#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

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

bool is_buffer(const Program& program, std::string_view name) {
  for (const CallRef& call : program.calls_named("register_buffer"))
    if (program.string(call.positional(0)).value_or("") == name) return true;
  return false;
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
    if (std::none_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
          const NodeId target = caller.module->defs()[index].target;
          return caller.module->tree().contains(caller.function->node, target) &&
                 target < site.call->node;
        }))
      return false;
  }
  return called;
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
      // self.x of another class is another attribute.
      if (tree.text(tree.child(id, Field::object)) == "self") {
        const ClassRef reader = program.enclosing_class({module, id});
        const ClassRef owner = program.enclosing_class({storing.module, def.target});
        if (!(reader == owner) && !(program.base_of(reader) == owner)) continue;
      }
      const auto& stores = module->defs_of(def.name, true);
      if (std::any_of(stores.begin(), stores.end(), [&](std::uint32_t index) {
            const Def& store = module->defs()[index];
            return store.target == id && store.kind != DefKind::augmented;
          }))
        continue;  // also self.height in self.height, self.width = ...
      const bool inside = module == storing.module && tree.contains(storing.function->node, id);
      if (inside ? id < def.target : !stores_first({module, id})) return true;
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

// self.features = [] above in the same method: each replica appends to a list of its own.
bool is_emptied_above(const Program& program, const CallRef& append) {
  const Ref list = append.receiver();
  const Module& module = *list.module;
  const auto& defs = module.defs_of(list.child(Field::attribute).text(), true);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Def& def = module.defs()[index];
    return def.kind == DefKind::assign && def.target < list.node &&
           module.text(def.target) == list.text() &&
           module.function_of(def.target) == module.function_of(list.node) &&
           program.guards({&module, def.target}).empty();
  });
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
                 facts::contains(guard.condition.text(), "hasattr");
        }))
      continue;
    if (augmented && is_buffer(program, def.name)) continue;
    if (is_begun_anew(program, pass, program.enclosing_class({&module, def.target}), def.name))
      continue;
    if (!augmented && !is_read_elsewhere(program, pass, storing, def)) continue;
    Finding& finding =
        report.at({&module, def.target}, Confidence::likely,
                  "forward stores self." + std::string(def.name) +
                      ": DataParallel runs it on a copy that is thrown away, so the value is lost");
    finding.help =
        "Return the value, or keep it in a registered buffer that is changed in place; "
        "or use DistributedDataParallel.";
  }
}

}  // namespace

void check_state_mutated_in_forward(const Program& program, Report& report) {
  if (!program.has_data_parallel()) return;
  for (const ClassRef& cls : facts::wrapped_classes(program, Wrapper::data_parallel)) {
    const std::vector<FunctionRef> pass = facts::forward_methods(program, cls);
    for (const FunctionRef& method : pass) {
      check_forward_stores(program, pass, method, report);
      for (const CallRef& call : facts::calls_in({method.module, method.function->body})) {
        if (call.call->name != "append" && call.call->name != "extend") continue;
        const Ref list = call.receiver();
        if (!list || !list.text().starts_with("self.") || list.kind() != Kind::attribute ||
            is_emptied_above(program, call) ||
            is_begun_anew(program, pass, program.enclosing_class(call.ref()),
                          list.text().substr(std::string_view("self.").size())))
          continue;
        report
            .at(call.ref(), Confidence::likely,
                "forward appends to " + std::string(list.text()) +
                    ": DataParallel's replicas share the list and change it from several threads")
            .help = "Return the value and collect it outside of forward.";
      }
    }
  }
}

}  // namespace bench::pitfalls
