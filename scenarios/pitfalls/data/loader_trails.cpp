#include "scenarios/pitfalls/data/loader_trails.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"

#include <algorithm>
#include <utility>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

constexpr std::size_t kDeepest = 12;
constexpr std::size_t kMostTrails = 16;

// Walks from a name back to the calls that gave it its value. Unlike sources() it keeps apart what
// two calls of one function return.
class TrailWalk {
 public:
  TrailWalk(const Program& program, const CallRef& loader) : program_(program), loader_(loader) {}

  void follow(Ref at, int element, CallTrail trail, std::size_t depth = 0) {
    if (!at || depth > kDeepest || found.size() >= kMostTrails) return;
    switch (at.kind()) {
      case Kind::call:
        return follow_call(at, element, std::move(trail), depth);
      case Kind::identifier:
        return follow_name(at, element, std::move(trail), depth);
      case Kind::attribute:
        return follow_attribute(at, element, std::move(trail), depth);
      case Kind::conditional:
        follow(at.with(at.module->tree().child_at(at.node, 0)), element, trail, depth + 1);
        return follow(at.with(at.module->tree().child_at(at.node, 2)), element, std::move(trail),
                      depth + 1);
      case Kind::tuple:
      case Kind::list:
        if (element < 0) return;
        return follow(
            at.with(at.module->tree().child_at(at.node, static_cast<std::size_t>(element))), -1,
            std::move(trail), depth + 1);
      default:
        return;
    }
  }

  std::vector<CallTrail> found;

 private:
  void follow_call(Ref at, int element, CallTrail trail, std::size_t depth) {
    const CallRef call = program_.as_call(at);
    if (at == loader_.ref()) return found.push_back(std::move(trail));
    const FunctionRef function = program_.callee(call);
    if (!function || function.function->name == "__init__") return;
    if (std::any_of(trail.begin(), trail.end(),
                    [&](const CallRef& each) { return each.call == call.call; }))
      return;
    trail.push_back(call);
    for (const NodeId value : function.function->returns)
      follow({function.module, value}, element, trail, depth + 1);
  }

  void follow_name(Ref at, int element, CallTrail trail, std::size_t depth) {
    const Module& module = *at.module;
    const FunctionRef function = program_.enclosing_function(at);
    if (facts::is_parameter(program_, at))
      return follow_given(function, at.text(), element, std::move(trail), depth);
    const auto& defs = module.defs_of(at.text(), false);
    const auto in_scope = [&](NodeId scope) {
      bool any = false;
      for (const std::uint32_t index : defs) {
        const Def& def = module.defs()[index];
        if (def.kind != DefKind::assign || def.scope != scope || def.value == kNoNode) continue;
        any = true;
        follow({&module, def.value}, def.element >= 0 ? def.element : element, trail, depth + 1);
      }
      return any;
    };
    if (!(function && in_scope(function.function->node))) in_scope(0);
  }

  // What the call passes by which the walk has come into the function, or else every call of it.
  void follow_given(FunctionRef function, std::string_view name, int element, CallTrail trail,
                    std::size_t depth) {
    if (!trail.empty() && program_.callee(trail.back()) == function) {
      const CallRef call = trail.back();
      trail.pop_back();
      return follow(facts::given_for(function, name, call), element, std::move(trail), depth + 1);
    }
    for (const CallRef& site : program_.call_sites(function))
      follow(facts::given_for(function, name, site), element, trail, depth + 1);
  }

  void follow_attribute(Ref at, int element, const CallTrail& trail, std::size_t depth) {
    if (at.child(Field::object).text() != "self") return;
    const Module& module = *at.module;
    for (const std::uint32_t index : module.defs_of(at.child(Field::attribute).text(), true)) {
      const Def& def = module.defs()[index];
      const Ref target{&module, def.target};
      if (def.kind != DefKind::assign || target.text() != at.text() ||
          program_.enclosing_class(target) != program_.enclosing_class(at))
        continue;
      follow({&module, def.value}, def.element >= 0 ? def.element : element, trail, depth + 1);
    }
  }

  const Program& program_;
  const CallRef& loader_;
};

bool is_left_out(const Program& program, const CallTrail& trail, const CallRef& sampler) {
  const Ref made = diagnose::made_at(program, sampler).ref();
  FunctionRef maker = program.enclosing_function(made);
  if (!maker) return false;  // the file itself takes what the function made
  facts::Switches switches = facts::switches_around(program, maker, made);
  for (auto call = trail.rbegin(); call != trail.rend() && !switches.empty(); ++call) {
    if (program.callee(*call) != maker) return false;
    facts::Switches outer;
    if (facts::is_switched_off_by(program, maker, switches, *call, outer)) return true;
    switches = std::move(outer);
    maker = program.enclosing_function(call->ref());
    if (!maker) return false;
  }
  return false;
}

}  // namespace

std::vector<CallTrail> trails_to(const Program& program, Ref iterable, const CallRef& loader) {
  TrailWalk walk(program, loader);
  walk.follow(program.strip_iterable(iterable), -1, {});
  return std::move(walk.found);
}

bool is_left_out_on_every_trail(const Program& program, Ref iterable, const CallRef& loader,
                                const CallRef& sampler) {
  if (!program.enclosing_function(sampler.ref())) return false;
  const auto trails = trails_to(program, iterable, loader);
  return !trails.empty() && std::all_of(trails.begin(), trails.end(), [&](const CallTrail& trail) {
    return is_left_out(program, trail, sampler);
  });
}

}  // namespace bench::pitfalls
