#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// teacher for teacher.module
std::string_view bare(std::string_view name) {
  constexpr std::string_view kInner = ".module";
  return name.ends_with(kInner) ? name.substr(0, name.size() - kInner.size()) : name;
}

// The model whose parameters the loop variable goes over.
Ref owner_of(const Program& program, Ref parameter) {
  for (const diagnose::Source& source : program.sources(parameter)) {
    const CallRef call = program.as_call(source.ref);
    if (source.how == diagnose::Source::How::loop_item && call && call.call->name == "parameters" &&
        call.receiver())
      return call.receiver();
  }
  return {};
}

// All that the name may be is made in sight.
bool is_made_in_sight(const std::vector<diagnose::Source>& sources) {
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
           return source.how == diagnose::Source::How::value;
         });
}

// model of one function and model of another, each made in sight, and no part of them the same.
bool are_different(const Program& program, Ref a, Ref b) {
  if (program.enclosing_function(a) == program.enclosing_function(b)) return false;
  const auto& first = program.module_sources(a);
  const auto& second = program.module_sources(b);
  return is_made_in_sight(first) && is_made_in_sight(second) &&
         std::none_of(first.begin(), first.end(), [&](const diagnose::Source& each) {
           return std::any_of(second.begin(), second.end(),
                              [&](const diagnose::Source& other) { return each.ref == other.ref; });
         });
}

}  // namespace

namespace {

// What switches the gradients of the object off; empty where a line gives them back.
std::vector<Ref> places_that_freeze(const Program& program, Ref object) {
  const std::string_view name = bare(object.text());
  std::vector<Ref> out;
  for (const Module* module : program.modules()) {
    for (const std::uint32_t index : module->defs_of("requires_grad", true)) {
      const Def& def = module->defs()[index];
      const Ref target{module, def.target};
      const Ref owner = owner_of(program, target.child(Field::object));
      if (!owner || bare(owner.text()) != name || are_different(program, owner, object)) continue;
      if (!program.is_literal_false({module, def.value})) return {};
      out.push_back(target);
    }
  }
  for (const CallRef& call : program.calls_named("requires_grad_")) {
    if (!call.receiver() || bare(call.receiver().text()) != name ||
        are_different(program, call.receiver(), object))
      continue;
    if (!program.is_literal_false(call.positional(0))) return {};
    out.push_back(call.ref());
  }
  return out;
}

}  // namespace

bool is_frozen(const Program& program, Ref object) {
  return !places_that_freeze(program, object).empty();
}

bool is_frozen_in_some_runs(const Program& program, Ref object) {
  std::set<std::pair<std::string_view, bool>> around;
  program.under(object, [&](Ref condition, bool holds) {
    around.insert({condition.text(), holds});
    return false;
  });
  const auto places = places_that_freeze(program, object);
  return !places.empty() && std::all_of(places.begin(), places.end(), [&](Ref place) {
    return program.under(place, [&](Ref condition, bool holds) {
      return !facts::contains(condition.text(), "__name__") &&
             !around.contains({condition.text(), holds});
    });
  });
}

namespace {

// freeze(net) of a function that tells parameters apart: those of some layers go on training.
bool chooses_parameters(const Program& program, const CallRef& call) {
  const auto helper = program.callee(call);
  if (!helper) return false;
  const auto& tree = helper.module->tree();
  const NodeId body = helper.function->body;
  for (NodeId at = body; at < tree[body].last; ++at)
    if (tree[at].kind == Kind::if_statement) return true;
  return !facts::contains(tree.text(body), "requires_grad");
}

// freeze_bn(net) and net.freeze_backbone() name a part of it.
bool is_of_whole_module(std::string_view name) {
  for (const std::string_view whole :
       {"freeze", "freeze_model", "freeze_net", "freeze_network", "freeze_module", "freeze_params",
        "freeze_parameters", "freeze_weights", "freeze_all"})
    if (name == whole) return true;
  return name == "requires_grad" || name == "requires_grad_" || name == "set_requires_grad" ||
         name == "toggle_grad";
}

// What a call does with the gradients of the object: freeze(net), set_requires_grad(net, False),
// net.requires_grad_(True). Nothing where it does not switch them, or those of something else.
std::optional<bool> switched_by(const Program& program, const CallRef& call,
                                std::string_view object) {
  const std::string name = facts::lowered(call.call->name);
  const bool by_flag = facts::contains(name, "_grad");
  const bool frees = facts::contains(name, "unfreeze") || facts::contains(name, "un_freeze");
  if (!frees && !is_of_whole_module(name)) return std::nullopt;
  const bool is_method = call.receiver() && bare(call.receiver().text()) == object;
  const Ref first = call.positional(0);
  if (!is_method && !(first && bare(first.text()) == object)) return std::nullopt;
  if (!by_flag) return frees || chooses_parameters(program, call);
  Ref flag = call.positional(is_method ? 0 : 1);
  if (!flag) flag = call.keyword("requires_grad");
  return !flag || !program.is_literal_false(flag);
}

}  // namespace

bool is_frozen_at(const Program& program, Ref object, Ref node) {
  const std::string_view name = bare(object.text());
  const Module& module = *node.module;
  const auto here = module.function_of(node.node);
  NodeId latest = 0;
  bool on = true;
  // What is frozen in some rounds alone, or but for some of its parameters, trains.
  const auto switched = [&](NodeId at, bool trains) {
    if (at >= node.node || at < latest || module.function_of(at) != here ||
        (!trains && !runs_wherever(program, node.with(at), node)))
      return;
    latest = at;
    on = trains;
  };
  for (const diagnose::Call& made : module.calls())
    if (made.node < node.node)
      if (const auto trains = switched_by(program, {&module, &made}, name))
        switched(made.node, *trains);
  for (const std::uint32_t index : module.defs_of("requires_grad", true)) {
    const Def& def = module.defs()[index];
    const Ref target{&module, def.target};
    const Ref owner = owner_of(program, target.child(Field::object));
    if (owner && bare(owner.text()) == name)
      switched(def.target, !program.is_literal_false({&module, def.value}));
  }
  return !on;
}

namespace {

// The names that the call making the object is given: Agent(editor, args, device) holds on to them.
// Empty where the object is made of anything else.
std::optional<std::set<std::string>> made_from(const Program& program, Ref object) {
  std::set<std::string> parts{std::string(bare(object.text()))};
  Ref made = object;
  if (const diagnose::Wrap* wrap = program.wrap_of(object)) made = wrap->module;
  if (made.kind() == Kind::identifier) parts.emplace(made.text());
  for (const diagnose::Source& source : program.module_sources(made)) {
    const CallRef call = program.as_call(source.ref);
    if (!call || source.how != diagnose::Source::How::value || call.has_splat())
      return std::nullopt;
    const auto& tree = call.module->tree();
    const Ref arguments = call.ref().child(Field::arguments);
    for (NodeId at = tree[arguments.node].first_child; at != kNoNode; at = tree[at].next_sibling) {
      Ref given = call.ref().with(at);
      if (given.kind() == Kind::keyword_argument) given = given.child(Field::value);
      parts.emplace(bare(given.text()));
    }
  }
  return parts;
}

}  // namespace

bool is_left_to_no_optimizer(const Program& program, Ref object) {
  const auto optimizers = program.calls(diagnose::Api::optimizer);
  object = diagnose::seen_above(program, object);
  const auto mine = made_from(program, object);
  return mine && !optimizers.empty() &&
         std::all_of(optimizers.begin(), optimizers.end(), [&](const CallRef& optimizer) {
           const CallRef parameters = program.made_by(optimizer.argument(0, "params"));
           if (!parameters || parameters.call->name != "parameters" || !parameters.receiver())
             return false;
           const Ref trained = diagnose::seen_above(program, parameters.receiver());
           if (program.enclosing_function(trained) != program.enclosing_function(object) &&
               !shares_variable(program, object, optimizer.ref()))
             return false;
           const auto theirs = made_from(program, trained);
           return theirs && std::none_of(theirs->begin(), theirs->end(),
                                         [&](const auto& part) { return mine->contains(part); });
         });
}

}  // namespace bench::pitfalls
