#include "scenarios/pitfalls/reductions.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/prepared.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// all_reduce_mean, reduce_tensor, gather_list, put into a queue of processes; neither
// ReduceLROnPlateau nor torch.gather.
bool says_reduction(std::string_view name) {
  for (const std::string_view word :
       {"allreduce", "allgather", "all_reduce", "all_gather", "reduce_tensor", "reduce_mean",
        "reduce_sum", "reduce_value", "reduce_scalar", "reduce_dict", "reduce_loss",
        "reduce_metric", "gather_", "synchronize_between"})
    if (facts::contains(name, word)) return true;
  return name == "reduce" || name == "put";
}

// accelerator.gather(...), gather_for_metrics(...) and reduce(...).
bool reduces_by_accelerate(const Program& program, const CallRef& call) {
  return (call.call->name == "gather" || call.call->name == "reduce" ||
          call.call->name == "gather_for_metrics") &&
         program.imports("accelerate") && is_of_accelerator(call);
}

// queue.put(args) where the script starts its ranks: it hands them work and takes no result.
bool hands_out_work(const Program& program, const CallRef& call) {
  if (call.call->name != "put") return false;
  const bool at_start =
      !program.enclosing_function(call.ref()) && call.module->under_main_guard(call.call->node);
  return at_start || facts::only_in_parent(program, call.ref());
}

}  // namespace

std::vector<Reduction> reductions_of(const Program& program) {
  std::vector<Reduction> out;
  for (const Api api : {Api::all_reduce, Api::all_gather, Api::reduce, Api::gather, Api::broadcast})
    for (const CallRef& call : program.calls(api)) {
      const bool gathers = api == Api::all_gather || api == Api::gather;
      out.push_back({call.ref(), call.positional(gathers && call.positional(1) ? 1 : 0)});
    }
  for (const Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const std::string name = facts::lowered(made.name);
      const bool reduces = says_reduction(name) || reduces_by_accelerate(program, call);
      if (reduces && made.api != Api::all_reduce && !program.callee(call) &&
          !hands_out_work(program, call))
        out.push_back({call.ref(), call.positional(0)});
    }
  return out;
}

bool enters(const Program& program, FunctionRef from, FunctionRef to) {
  if (!from || !to) return false;
  const auto reached = program.reached({from.module, from.function->body});
  return std::find(reached.begin(), reached.end(), to) != reached.end();
}

namespace {

bool serves_within(const Program& program, const Reduction& reduction, FunctionRef evaluation,
                   int depth) {
  constexpr int kFollowedHelpers = 3;
  const FunctionRef here = program.enclosing_function(reduction.call);
  if (here == evaluation || enters(program, evaluation, here)) return true;
  if (!here || !reduction.value) return true;
  const auto sources = program.sources(reduction.value);
  // rt = tensor.clone() in a helper: the value is that of the helper's callers.
  const auto is_given = [&](Ref value) {
    return std::any_of(here.function->parameters.begin(), here.function->parameters.end(),
                       [&](const auto& each) {
                         const std::string_view text = value.text();
                         return text == each.name || text.starts_with(std::string(each.name) + ".");
                       });
  };
  // meter.all_reduce() reduces what the object holds.
  const bool of_object = here.function->owner_class != diagnose::kNoNode;
  const bool of_caller =
      of_object || is_given(reduction.value) ||
      std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
        return program.enclosing_function(source.ref) == here && is_given(source.ref);
      });
  if (of_caller && depth < kFollowedHelpers) {
    const auto& sites = program.call_sites(here);
    return sites.empty() || std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
             const Ref value = of_object ? site.receiver() : site.positional(0);
             return serves_within(program, {site.ref(), value}, evaluation, depth + 1);
           });
  }
  if (!enters(program, here, evaluation)) return false;
  // Of the caller: it is the evaluation's unless all of it comes from another function.
  return sources.empty() ||
         std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const FunctionRef there = program.enclosing_function(source.ref);
           return there == here || there == evaluation || enters(program, evaluation, there);
         });
}
}  // namespace

bool serves(const Program& program, const Reduction& reduction, FunctionRef evaluation) {
  return serves_within(program, reduction, evaluation, 0);
}

VariableNames reduced_in(const Program& program, FunctionRef function,
                         const std::vector<Reduction>& reductions) {
  VariableNames out;
  const Ref body{function.module, function.function->body};
  const auto& tree = body.module->tree();
  const auto add = [&](Ref value) {
    if (value) out.merge(variables_in(value));
  };
  std::vector<NodeId> places;
  for (const Reduction& reduction : reductions)
    if (program.enclosing_function(reduction.call) == function) {
      add(reduction.value);
      places.push_back(reduction.call.node);
    }
  for (const CallRef& call : facts::calls_in(body)) {
    const FunctionRef helper = program.callee(call);
    if (!helper || helper == function ||
        std::none_of(reductions.begin(), reductions.end(), [&](const Reduction& reduction) {
          const FunctionRef there = program.enclosing_function(reduction.call);
          return there == helper || enters(program, helper, there);
        }))
      continue;
    add(call.ref().child(Field::arguments));
    add(call.receiver());
    places.push_back(call.call->node);
  }
  for (const diagnose::Def& def : function.module->defs())
    if (def.value != diagnose::kNoNode && tree.contains(body.node, def.target) &&
        std::any_of(places.begin(), places.end(),
                    [&](NodeId place) { return tree.contains(def.value, place); }))
      add(body.with(def.target));
  return out;
}

}  // namespace bench::pitfalls
