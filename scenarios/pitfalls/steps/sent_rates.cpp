#include "scenarios/pitfalls/steps/sent_rates.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;

namespace {

// class Lion(Optimizer): the defaults of the groups that it is made with.
bool is_in_optimizer_class(const Program& program, Ref node) {
  const auto cls = program.enclosing_class(node);
  const auto method = program.enclosing_function(node);
  return cls && method &&
         (method.function->name == "__init__" || method.function->name == "__setstate__") &&
         std::any_of(cls.cls->bases.begin(), cls.cls->bases.end(), [&](diagnose::NodeId base) {
           return cls.module->text(base).ends_with("Optimizer");
         });
}

// group["lr"] = rate after rate = scheduler.get_last_lr()[0], which each rank asks its own
// scheduler: nothing has come from another one.
bool is_own_rate(const Program& program, Ref target) {
  const Ref line = target.with(target.module->tree()[target.node].parent);
  const Ref rate = line.kind() == Kind::assignment ? line.child(Field::right) : Ref{};
  if (!rate) return false;
  const auto& sources = program.sources(rate);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
           const std::string_view text = source.ref.text();
           return text.ends_with("get_last_lr()") || text.ends_with("get_last_lr()[0]");
         });
}

// layer.load_state_dict(...), of no optimizer and no scheduler.
bool is_of_weights_alone(const Program& program, const CallRef& call) {
  return call.call->name == "load_state_dict" && call.receiver() &&
         !says_any(call.receiver().text(), {"opt", "sched", "state"}) &&
         !program.comes_from(call.receiver(), Api::optimizer) &&
         !program.comes_from(call.receiver(), Api::scheduler);
}

}  // namespace

bool hands_learning_rate_on(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::NodeId node : module->nodes_of(Kind::subscript)) {
      const auto& tree = module->tree();
      if (tree[node].field == Field::left &&
          tree.string_value(tree.child(node, Field::subscript)).value_or("") == "lr" &&
          !is_in_optimizer_class(program, {module, node}) && !is_own_rate(program, {module, node}))
        return true;
    }
  for (const char* name : {"broadcast_optimizer_state", "broadcast_object", "broadcast_object_list",
                           "load_state_dict"})
    for (const CallRef& call : program.calls_named(name))
      if (!program.loops_around(call.ref()).empty() && !is_of_weights_alone(program, call))
        return true;
  return false;
}

}  // namespace bench::pitfalls
