#include "scenarios/pitfalls/wrappers/idle_wrapper.hpp"

#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Wrap;

bool never_trains_through(const Program& program, const Wrap& wrap) {
  const auto& forwards = program.forward_calls();
  return std::none_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
    return forward.wrap == &wrap && !program.under_no_grad(forward.call.ref()) &&
           !program.is_evaluation(forward.call.ref()) && !is_unwrapped_above(program, forward.call);
  });
}

namespace {

// flow.model = ddp_model: the object is given the wrapper later.
bool is_given_something(Ref object) {
  const std::string prefix = std::string(object.text()) + ".";
  const auto& defs = object.module->defs();
  return std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& def) {
    return def.is_attribute && object.module->text(def.target).starts_with(prefix);
  });
}

}  // namespace

bool keeps_bare_model(const Program& program, const CallRef& call, const Wrap& wrap) {
  Ref object{call.module, call.call->function};
  if (const Ref receiver = call.receiver()) object = receiver;
  if (object.text() == "self" || !wrap.module || program.wrap_of(object) != nullptr) return false;
  const auto& sources = program.sources(object);
  const auto names = program.names_behind(object);
  if (sources.size() != 1 || is_given_something(object) ||
      std::any_of(names.begin(), names.end(), is_given_something))
    return false;
  const CallRef made = program.as_call(sources.front().ref);
  if (!made || sources.front().how != diagnose::Source::How::value || program.callee(made) ||
      made.call->api != diagnose::Api::none || !program.runs_before(made.ref(), wrap.call.ref()) ||
      program.runs_before(wrap.call.ref(), made.ref()))
    return false;
  if (says_any(made.call->name, {"ddp", "fsdp", "parallel"})) return false;  // another wrapper
  // copy.deepcopy(net) is another model.
  if (made.call->path.starts_with("copy.")) return false;
  const Ref given = made.positional(0);
  return given && program.same_variable(given, wrap.module) &&
         !program.comes_from(wrap.module, diagnose::Api::optimizer) &&
         never_trains_through(program, wrap);
}

}  // namespace bench::pitfalls
