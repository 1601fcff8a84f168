#include "scenarios/pitfalls/steps/stored_gradients.hpp"

#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/steps/reduced_gradients.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// ddp.parameters(), list(ddp.parameters()) + others, and a name of either.
bool are_parameters_of_wrapper(const Program& program, Ref inputs) {
  for (const diagnose::Source& source : program.sources(inputs)) {
    if (source.how != diagnose::Source::How::value) continue;
    for (const CallRef& call : facts::calls_in(source.ref))
      if (call.call->name == "parameters" && call.receiver() &&
          program.is_wrapped(call.receiver(), diagnose::Wrapper::ddp))
        return true;
  }
  return false;
}

// set_grads(autograd.grad(loss, params), params): of another file by its name, of this one by what
// it does.
bool is_given_to_store(const Program& program, const CallRef& taken) {
  const auto& tree = taken.module->tree();
  const NodeId list = tree[taken.call->node].parent;
  if (list == kNoNode) return false;
  const CallRef store = program.as_call(taken.ref().with(tree[list].parent));
  if (!store) return false;
  if (const FunctionRef function = program.callee(store)) {
    const std::string_view text = function.module->text(function.function->node);
    return facts::contains(text, ".grad = ") && !says_any(text, {"reduce", "sync", "gather"});
  }
  const std::string name = facts::lowered(store.call->name);
  return name == "set_grads" || name == "set_grad" || name == "set_gradients" ||
         name == "assign_grads";
}

// for p, g in zip(ddp.parameters(), grads): p.grad = g, below.
bool is_stored_below(const Program& program, const CallRef& taken) {
  const std::string_view name = program.assigned_name(taken.ref());
  if (name.empty()) return false;
  const auto& module = *taken.module;
  const auto& defs = module.defs_of("grad", true);
  return std::any_of(defs.begin(), defs.end(), [&](const auto index) {
    const diagnose::Def& def = module.defs()[index];
    const Ref stored{&module, def.value};
    if (def.kind != diagnose::DefKind::assign || !stored || def.target < taken.call->node ||
        program.enclosing_function(stored) != program.enclosing_function(taken.ref()) ||
        stored.kind() != Kind::identifier)
      return false;
    const Ref loop = program.innermost_loop(stored);
    const CallRef zip = loop && loop.kind() == Kind::for_statement
                            ? program.as_call(loop.child(Field::right))
                            : CallRef{};
    return zip && zip.call->name == "zip" &&
           (zip.positional(0).text() == name ||
            (zip.positional(1) && zip.positional(1).text() == name));
  });
}

bool reduces_beside(const Program& program, Ref node) {
  const FunctionRef function = program.enclosing_function(node);
  return function && says_any(function.module->text(function.function->node),
                              {"all_reduce", "allreduce", "average_grad", "sync_grad",
                               "reduce_grad", "all_gather"});
}

}  // namespace

void check_stored_gradients(const Program& program, Report& report) {
  if (program.framework_distributes() || reduces_gradients(program)) return;
  for (const CallRef& taken : program.calls(Api::autograd_grad)) {
    const Ref inputs = taken.argument(1, "inputs");
    if (!inputs || !are_parameters_of_wrapper(program, inputs) ||
        reduces_beside(program, taken.ref()) ||
        facts::only_without_distribution(program, taken.ref()) ||
        !(is_given_to_store(program, taken) || is_stored_below(program, taken)))
      continue;
    report
        .at(taken.ref(), Confidence::likely,
            "torch.autograd.grad does not run DDP's hooks: the gradients of this rank are stored, "
            "and nothing reduces them")
        .help = "Call loss.backward(), or all-reduce these gradients before the step.";
  }
}

}  // namespace bench::pitfalls
