#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::TrainingLoop;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// ddp for ddp.module(x) and ddp.module.encode(x); empty when the call does not go round the
// wrapper.
Ref bypassed(const CallRef& call) {
  Ref function{call.module, call.call->function};
  for (int depth = 0; depth < 3 && function.kind() == Kind::attribute; ++depth) {
    const Ref attribute = function.child(Field::attribute);
    if (attribute && attribute.text() == "module") return function.child(Field::object);
    function = function.child(Field::object);
  }
  return {};
}

// A method of that name is decorated with no_grad.
bool runs_without_grad(const Program& program, const CallRef& call) {
  for (const auto& function : program.functions())
    if (function.function->name == call.call->name &&
        program.under_no_grad({function.module, function.function->body}))
      return true;
  return false;
}

}  // namespace

void check_gradient_path_bypasses_ddp(const Program& program, Report& report) {
  if (!program.has_ddp()) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards)
      for (const Ref& node : facts::calls_behind(program, facts::loss_of(backward))) {
        const CallRef call = program.as_call(node);
        if (program.under_no_grad(node) || runs_without_grad(program, call)) continue;
        std::string_view how;
        if (const Ref object = bypassed(call); object && program.is_wrapped(object, Wrapper::ddp))
          how = "the forward pass goes through .module";
        for (const Wrap& wrap : program.wraps()) {
          const Ref function{call.module, call.call->function};
          if (wrap.kind != Wrapper::ddp || !wrap.module ||
              !program.same_variable(function, wrap.module))
            continue;
          const std::string_view name = program.assigned_name(wrap.call.ref());
          if (name.empty() || name == wrap.module.text() ||
              program.is_wrapped(function, Wrapper::ddp))
            continue;
          if (program.runs_before(wrap.call.ref(), node))
            how = "the forward pass uses the model that was wrapped";
        }
        if (how.empty()) continue;
        report
            .at(node, Confidence::certain,
                std::string(how) +
                    ", not the wrapper: its gradients are never reduced and every rank "
                    "trains a model of its own")
            .help = "Call the DDP object itself; send other methods through forward.";
      }
}

}  // namespace bench::pitfalls
