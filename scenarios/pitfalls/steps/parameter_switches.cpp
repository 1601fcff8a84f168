#include "scenarios/pitfalls/steps/parameter_switches.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::Source;

bool is_switch(const Program& program, const Def& def, const Module& module) {
  return def.value != kNoNode && facts::is_parameter(program, {&module, def.value});
}

namespace {

// The call is given the literal somewhere, or a constant that stands for it.
bool is_told(const Program& program, const CallRef& call, Kind literal) {
  const auto& tree = call.module->tree();
  for (diagnose::NodeId at = call.call->node; at < tree[call.call->node].last; ++at)
    if (tree[at].field != Field::function && program.written(call.ref().with(at)).kind() == literal)
      return true;
  return false;
}

// The parameter of the function whose weights the line goes over: for p in model.parameters().
Ref switched_parameter(const Program& program, const Module& module, const Def& def) {
  const Ref parameter{&module, module.tree().child(def.target, Field::object)};
  for (const Source& source : program.sources(parameter)) {
    const CallRef list = program.as_call(source.ref);
    if (source.how == Source::How::loop_item && list && list.receiver() && list.module == &module &&
        facts::is_parameter(program, list.receiver()))
      return list.receiver();
  }
  return {};
}

// if epoch == 5: in the loop over epochs, and not in that over batches.
bool is_at_some_epoch(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(),
                     [](const diagnose::Guard& guard) {
                       return guard.condition.kind() == Kind::comparison &&
                              facts::contains(guard.condition.text(), "epoch");
                     }) &&
         program.innermost_loop(node);
}

}  // namespace

std::vector<CallRef> unseen_switches(const Program& program) {
  std::vector<CallRef> out;
  for (const Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (made.name.find("requires_grad") == std::string_view::npos || program.callee(call) ||
          made.name == "requires_grad_" || !call.argument(0, "model"))
        continue;
      std::size_t on = 0;
      std::size_t off = 0;
      for (const CallRef& other : program.calls_named(made.name))
        for (const Kind word : {Kind::true_literal, Kind::false_literal})
          if (is_told(program, other, word)) ++(word == Kind::true_literal ? on : off);
      if ((on == 0) != (off == 0)) out.push_back(call);
    }
  return out;
}

std::vector<CallRef> seen_switches(const Program& program) {
  std::vector<CallRef> out;
  for (const Module* module : program.modules())
    for (const std::uint32_t index : module->defs_of("requires_grad", true)) {
      const Def& def = module->defs()[index];
      const Ref model = def.value == kNoNode ? Ref{} : switched_parameter(program, *module, def);
      if (!model) continue;
      const Ref value{module, def.value};
      const bool by_flag = facts::is_parameter(program, value);
      std::vector<CallRef> calls;
      bool on = false;
      bool off = false;
      for (const CallRef& call : program.call_sites(program.enclosing_function(model))) {
        const Ref told = by_flag ? call.argument(1, value.text()) : value;
        (told && program.is_literal_false(told) ? off : on) = true;
        if (facts::contains(call.argument(0, model.text()).text(), ".module"))
          calls.push_back(call);
      }
      if (on != off) out.insert(out.end(), calls.begin(), calls.end());
    }
  return out;
}

std::vector<std::pair<CallRef, Ref>> switches_by_epoch(const Program& program) {
  std::vector<std::pair<CallRef, Ref>> out;
  for (const Module* module : program.modules())
    for (const std::uint32_t index : module->defs_of("requires_grad", true)) {
      const Def& def = module->defs()[index];
      if (!is_switch(program, def, *module)) continue;
      const Ref given = switched_parameter(program, *module, def);
      const Ref object{module, module->tree().child(def.target, Field::object)};
      for (const CallRef& call : program.call_sites(program.enclosing_function(object)))
        if (is_at_some_epoch(program, call.ref()))
          out.emplace_back(call, given ? call.argument(0, given.text()) : object);
    }
  return out;
}

std::vector<std::pair<CallRef, Ref>> unseen_stages(const Program& program) {
  std::vector<std::pair<CallRef, Ref>> out;
  for (const Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (made.name.find("freeze") == std::string_view::npos || program.callee(call) ||
          !is_at_some_epoch(program, call.ref()))
        continue;
      // model.module.unfreeze() and helpers.unfreeze(model.module)
      const bool is_method = call.receiver() && made.path.empty();
      if (const Ref object = is_method ? call.receiver() : call.positional(0))
        out.emplace_back(call, object);
    }
  return out;
}

}  // namespace bench::pitfalls
