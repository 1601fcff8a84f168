#include "scenarios/pitfalls/wrappers/changed_wrap.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

Ref base_of(Ref expression) {
  while (expression && (expression.kind() == Kind::attribute || expression.kind() == Kind::call ||
                        expression.kind() == Kind::subscript)) {
    const Ref object = expression.kind() == Kind::attribute ? expression.child(Field::object)
                       : expression.kind() == Kind::call    ? expression.child(Field::function)
                                                            : expression.child(Field::value);
    if (!object) break;
    if (expression.kind() == Kind::attribute && object.text() == "self") return expression;
    expression = object;
  }
  return expression;
}

namespace {

// The same as base_of(), and state.model for state.model.module.fc.weight where that is the
// wrapper.
Ref base_in(const Program& program, Ref expression) {
  for (Ref at = expression; at;) {
    if ((at.kind() == Kind::attribute || at.kind() == Kind::subscript) &&
        program.wrap_of(at) != nullptr)
      return at;
    at = at.kind() == Kind::attribute   ? at.child(Field::object)
         : at.kind() == Kind::call      ? at.child(Field::function)
         : at.kind() == Kind::subscript ? at.child(Field::value)
                                        : Ref{};
  }
  return base_of(expression);
}

}  // namespace

const Wrap* changed_wrap(const Program& program, Ref object, Ref use, OfApex apex) {
  Ref base = base_in(program, object);
  for (const Source& source : program.sources(base)) {
    // for p in model.parameters(): p.requires_grad = False
    // bare = model.module
    if (source.how == Source::How::loop_item || source.ref.text().ends_with(".module"))
      base = base_in(program, source.ref);
  }
  for (const Wrap& wrap : program.wraps()) {
    const bool of_apex = wrap.call.call->api == diagnose::Api::apex_ddp;
    if (wrap.kind != Wrapper::ddp || (of_apex && apex == OfApex::left_out)) continue;
    const bool same =
        program.wrap_of(base, wrap.kind) == &wrap || program.same_variable(base, wrap.module);
    if (same && program.runs_before(wrap.call.ref(), use)) return &wrap;
  }
  return nullptr;
}

bool is_trained(const Program& program, const Wrap& wrap) {
  bool any = false;
  for (const auto& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const auto forwards = facts::forwards_behind(program, facts::loss_of(backward));
      any = any || !forwards.empty();
      for (const auto& forward : forwards)
        if (forward.wrap == &wrap && !program.under_no_grad(forward.call.ref())) return true;
    }
  return !any;
}

}  // namespace bench::pitfalls
