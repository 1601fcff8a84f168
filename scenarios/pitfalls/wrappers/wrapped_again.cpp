#include "scenarios/pitfalls/wrappers/wrapped_again.hpp"

#include "scenarios/pitfalls/wrappers/changed_wrap.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// A backward pass stands between the change and the second wrap, in the same file.
bool trains_between(const Program& program, Ref change, const Wrap& wrap) {
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    return backward.module == change.module && backward.call->node > change.node &&
           backward.call->node < wrap.call.call->node &&
           program.enclosing_function(backward.ref()) == program.enclosing_function(change);
  });
}

}  // namespace

bool is_wrapped_again(const Program& program, Ref object, Ref change, const Wrap& first) {
  const auto& wraps = program.wraps();
  const Ref base = base_of(object);
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return &wrap != &first && wrap.kind == first.kind && wrap.call.module == change.module &&
           wrap.call.call->node > change.node && base_of(wrap.module).text() == base.text() &&
           !trains_between(program, change, wrap) &&
           program.enclosing_function(wrap.call.ref()) == program.enclosing_function(change);
  });
}

bool is_wrapped_anew_below(const Program& program, const Wrap& wrap, Ref change) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& other) {
    return other.kind == Wrapper::ddp && other.module && other.call.module == change.module &&
           other.call.call->node > change.node &&
           program.enclosing_function(other.call.ref()) == program.enclosing_function(change) &&
           !trains_between(program, change, other) && other.module.text() == wrap.module.text();
  });
}

bool is_followed_by_wrap(const Program& program, const Wrap& first, Ref change) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return &wrap != &first && wrap.kind == first.kind && wrap.call.module == change.module &&
           wrap.call.call->node > change.node &&
           program.enclosing_function(wrap.call.ref()) == program.enclosing_function(change);
  });
}

bool is_taken_out_above(const Program& program, Ref model, const CallRef& change) {
  if (model.kind() != Kind::identifier) return false;
  const auto& module = *model.module;
  const auto defs = module.defs_of(model.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const Def& def = module.defs()[index];
    return def.kind == DefKind::assign && def.value != kNoNode && def.target < change.call->node &&
           module.text(def.value) == std::string(model.text()) + ".module" &&
           program.enclosing_function({&module, def.target}) ==
               program.enclosing_function(change.ref());
  });
}

}  // namespace bench::pitfalls
