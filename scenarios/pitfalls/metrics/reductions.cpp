#include "scenarios/pitfalls/metrics/reductions.hpp"

#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// gather_operation of PointNet++ and gather_feat of CenterNet, which take rows of a tensor by
// index.
bool gathers_by_index(std::string_view name) {
  return name.ends_with("gather_feat") || name.ends_with("gather_nd") ||
         holds_any(name, {"gather_op", "gather_point", "gather_by", "gather_ind", "gather_idx",
                          "gather_neighb", "gather_knn", "batched_gather", "batch_gather"});
}

// all_reduce_mean, reduce_tensor, gather_list, put into a queue of processes; neither
// ReduceLROnPlateau nor torch.gather.
bool says_reduction(std::string_view name) {
  // Each of the words below has one of these parts; most names have none.
  const bool may =
      name == "put" || holds_any(name, {"reduc", "gather", "sync", "dist", "across", "colle",
                                        "concat", "scalars", "save_r", "all_r", "merge_"});
  if (!may || gathers_by_index(name)) return false;
  for (const std::string_view word : {"allreduce",
                                      "allgather",
                                      "all_reduce",
                                      "all_gather",
                                      "reduce_tensor",
                                      "reduce_mean",
                                      "reduce_sum",
                                      "reduce_value",
                                      "reduce_scalar",
                                      "reduce_dict",
                                      "reduce_loss",
                                      "reduce_metric",
                                      "gather_",
                                      "synchronize_between",
                                      "distributed_mean",
                                      "distributed_sum",
                                      "distributed_avg",
                                      "distributed_average",
                                      "average_across",
                                      "mean_across",
                                      "sum_across",
                                      "dist_reduce",
                                      "dist_sum",
                                      "dist_mean",
                                      "dist_avg",
                                      "dist_gather",
                                      "dist_collect",
                                      "dist_concat",
                                      "distributed_concat",
                                      "broadcast_scalars",
                                      "collect_result",
                                      "collect_pred",
                                      "collect_metric",
                                      "collect_across",
                                      "concat_all",
                                      "save_result",
                                      "sync_across",
                                      "sync_metric",
                                      "sync_result",
                                      "sync_dict",
                                      "sync_between",
                                      "across_rank",
                                      "across_process",
                                      "across_gpu",
                                      "from_all_rank"})
    if (facts::contains(name, word) && !facts::contains(name, "summar")) return true;
  const bool merges =
      facts::contains(name, "merge_") &&
      holds_any(name, {"result", "rank", "across", "pred", "metric", "stat", "output", "all"});
  return merges || name == "reduce" || name == "put" || name == "sync" || name.ends_with("_gather");
}

bool is_name_of_accelerate(std::string_view name) {
  return name == "gather" || name == "reduce" || name == "gather_for_metrics";
}

// accelerator.gather(...), gather_for_metrics(...) and reduce(...).
bool reduces_by_accelerate(const Program& program, const CallRef& call) {
  return is_name_of_accelerate(call.call->name) &&
         (program.imports("accelerate") || program.uses(Api::hf_trainer)) &&
         is_of_accelerator(program, call);
}

// queue.put(args) where the script starts its ranks: it hands them work and takes no result.
bool hands_out_work(const Program& program, const CallRef& call) {
  if (call.call->name != "put") return false;
  const bool at_start =
      !program.enclosing_function(call.ref()) && call.module->under_main_guard(call.call->node);
  return at_start || facts::only_in_parent(program, call.ref());
}

// What the call reduces: its first argument, or meters in meters.synchronize_between_processes().
Ref given_to(const Program& program, const CallRef& call) {
  if (const Ref first = call.positional(0)) return first;
  const Ref object = call.receiver();
  const bool is_object = object.kind() == Kind::identifier &&
                         object.module->import_path(object.text()).empty() &&
                         !program.sources(object).empty();
  return is_object ? object : Ref{};
}

// dist_sum(device, top1.sum, top1.count): each number that the helper is given.
void add_reductions_by(const Program& program, const CallRef& call, std::vector<Reduction>& out) {
  out.push_back({call.ref(), given_to(program, call)});
  for (std::size_t i = 1; const Ref more = call.positional(i); ++i)
    if (diagnose::stands_for_object(more)) out.push_back({call.ref(), more});
}

// dist.broadcast(stop, src=0): what one rank says, and no number of the others is in it. Where the
// source is a variable, each rank may have its turn.
bool sends_number_of_one(const Program& program, const CallRef& call) {
  const Ref source = program.written(call.argument(1, "src"));
  return call.call->api == Api::broadcast && source.kind() == Kind::integer &&
         !call.keyword("group");
}

}  // namespace

std::vector<Reduction> reductions_of(const Program& program) {
  std::vector<Reduction> out;
  for (const Api api : {Api::all_reduce, Api::all_gather, Api::reduce, Api::gather, Api::broadcast})
    for (const CallRef& call : program.calls(api)) {
      if (sends_number_of_one(program, call)) continue;
      const bool gathers = api == Api::all_gather || api == Api::gather;
      out.push_back({call.ref(), call.positional(gathers && call.positional(1) ? 1 : 0)});
    }
  const auto may_reduce = [](std::string_view name) {
    return says_reduction(facts::lowered(name)) || is_name_of_accelerate(name);
  };
  for (const CallRef& call : program.calls_that(may_reduce)) {
    const bool reduces =
        says_reduction(facts::lowered(call.call->name)) || reduces_by_accelerate(program, call);
    if (reduces && call.call->api != Api::all_reduce && !program.callee(call) &&
        call.call->path != "functools.reduce" && !hands_out_work(program, call))
      add_reductions_by(program, call, out);
  }
  return out;
}

bool enters(const Program& program, FunctionRef from, FunctionRef to) {
  if (!from || !to) return false;
  const auto reached = program.reached({from.module, from.function->body});
  return std::find(reached.begin(), reached.end(), to) != reached.end();
}

namespace {

// meter.all_reduce() of any object: it may be that of the class, which dist.all_reduce() is not.
bool may_be_called(const Program& program, FunctionRef method) {
  if (method.function->name.starts_with("__")) return true;
  const auto calls = program.calls_named(method.function->name);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const FunctionRef callee = program.callee(call);
    return call.call->api == Api::none && call.receiver() &&
           (!callee || callee.function->owner_class != diagnose::kNoNode);
  });
}

// A decorator may keep the function for later: @register; torch.no_grad() does not.
bool may_be_registered(FunctionRef helper) {
  const auto& tree = helper.module->tree();
  const NodeId around = tree[helper.function->node].parent;
  if (around == diagnose::kNoNode || tree[around].kind != Kind::decorated) return false;
  for (NodeId at = tree[around].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::decorator &&
        !holds_any(tree.text(at), {"no_grad", "inference_mode", "staticmethod", "classmethod"}))
      return true;
  return false;
}

// A helper that the file defines, as scripts copy it, and nothing calls or hands on.
bool is_never_called(const Program& program, FunctionRef helper) {
  if (may_be_registered(helper) || !program.handed_on(helper).empty()) return false;
  return helper.function->owner_class == diagnose::kNoNode || !may_be_called(program, helper);
}

// loss of the training step, in a method that makes the backward pass: what the object holds is
// reduced by methods for that.
bool is_of_training_step(const Program& program, const Reduction& reduction, FunctionRef here) {
  if (reduction.value.kind() != Kind::identifier) return false;
  const auto calls = facts::calls_in({here.module, here.function->body});
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->name == "backward" && program.enclosing_function(call.ref()) == here;
  });
}

// model(x) or loss.backward(): it computes figures of its own from what it is given.
bool runs_a_model(FunctionRef function) {
  const auto& parameters = function.function->parameters;
  const auto calls = facts::calls_in({function.module, function.function->body});
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->name == "backward" ||
           (!call.receiver() &&
            std::any_of(parameters.begin(), parameters.end(),
                        [&](const auto& p) { return p.name == call.call->name; }));
  });
}

// values = []; for name, value in results.items(): values.append(value); dist.reduce(
// torch.stack(values), 0): made of what the helper is given first.
bool is_made_of_first(FunctionRef helper, Ref value) {
  const auto& parameters = helper.function->parameters;
  if (parameters.empty() || helper.function->owner_class != diagnose::kNoNode ||
      runs_a_model(helper))
    return false;
  const Ref body{helper.module, helper.function->body};
  return behind(variables_in(value), assignments_in(body))
      .contains(std::string(parameters.front().name));
}

bool serves_within(const Program& program, const Reduction& reduction, FunctionRef evaluation,
                   int depth) {
  constexpr int kFollowedHelpers = 3;
  const FunctionRef here = program.enclosing_function(reduction.call);
  if (here == evaluation || enters(program, evaluation, here)) return true;
  if (!here || !reduction.value) return true;
  const auto& sources = program.sources(reduction.value);
  // rt = tensor.clone() in a helper: the value is that of the helper's callers.
  const auto is_given = [&](Ref value) {
    return std::any_of(here.function->parameters.begin(), here.function->parameters.end(),
                       [&](const auto& each) {
                         const std::string_view text = value.text();
                         return text == each.name || text.starts_with(std::string(each.name) + ".");
                       });
  };
  // meter.all_reduce() reduces what the object holds.
  const bool of_object = here.function->owner_class != diagnose::kNoNode &&
                         !is_of_training_step(program, reduction, here);
  const bool of_caller =
      of_object || is_given(reduction.value) ||
      (!enters(program, here, evaluation) && is_made_of_first(here, reduction.value)) ||
      std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
        return program.enclosing_function(source.ref) == here && is_given(source.ref);
      });
  if (of_caller && depth < kFollowedHelpers) {
    const auto& sites = program.call_sites(here);
    if (sites.empty()) return !is_never_called(program, here);
    return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
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

namespace {

// Both stand in one loop, and what is reduced has a name that the evaluation gives a value: it may
// be that of the round before.
bool is_of_round_before(const Program& program, Ref reduced, Ref given, Ref loop) {
  const auto& tree = loop.module->tree();
  const Ref rounds = program.innermost_loop(reduced);
  if (!rounds || rounds.module != loop.module || !tree.contains(rounds.node, loop.node))
    return false;
  if (!given) return true;
  const VariableNames names = with_wholes(variables_in(given));
  const auto assigned = assignments_in(loop);
  return std::any_of(assigned.begin(), assigned.end(),
                     [&](const Assigned& each) { return meet(with_wholes({each.name}), names); });
}

}  // namespace

bool is_above(const Program& program, const Reduction& reduction, Ref loop) {
  const FunctionRef function = program.enclosing_function(loop);
  const FunctionRef there = program.enclosing_function(reduction.call);
  if (!function || !there) return false;
  if (there == function)
    return loop.module->tree()[reduction.call.node].last <= loop.node &&
           !is_of_round_before(program, reduction.call, reduction.value, loop);
  bool leads = false;
  for (const CallRef& call : facts::calls_in({function.module, function.function->body})) {
    const FunctionRef helper = program.callee(call);
    if (!helper || helper == function || !(helper == there || enters(program, helper, there)))
      continue;
    if (call.call->node > loop.node ||
        is_of_round_before(program, call.ref(), call.ref().child(Field::arguments), loop))
      return false;
    leads = true;
  }
  return leads;
}

namespace {

// The one place outside of the function that calls it; nothing where there are several or none.
CallRef only_call_from_outside(const Program& program, FunctionRef function) {
  CallRef only;
  for (const CallRef& site : program.call_sites(function)) {
    if (program.enclosing_function(site.ref()) == function) continue;
    if (only) return {};
    only = site;
  }
  return only;
}

}  // namespace

bool is_over_before(const Program& program, const Reduction& reduction, Ref loop) {
  const CallRef collective = program.as_call(reduction.call);
  if (!collective || collective.call->api == Api::none) return false;
  const FunctionRef evaluation = program.enclosing_function(loop);
  constexpr int kMostCallers = 8;  // functions that call each other have no end of callers
  FunctionRef at = program.enclosing_function(reduction.call);
  for (int callers = 0; at && at != evaluation; ++callers) {
    const CallRef site = only_call_from_outside(program, at);
    if (callers == kMostCallers || (!site && !program.call_sites(at).empty())) return false;
    at = site ? program.enclosing_function(site.ref()) : FunctionRef{};
  }
  return program.loops_around(reduction.call).empty() &&
         program.runs_before(reduction.call, loop) && !program.runs_before(loop, reduction.call);
}

namespace {

// A list of its arguments, their sum or a copy; not what a function makes of them.
bool passes_figures(const CallRef& call) {
  constexpr std::string_view kBuiltIn[] = {"sum", "list", "tuple", "dict", "float",
                                           "zip", "max",  "min",   "len",  "deepcopy"};
  if (!call.receiver() &&
      std::find(std::begin(kBuiltIn), std::end(kBuiltIn), call.call->name) != std::end(kBuiltIn))
    return true;
  // torch.tensor(x), and tensor(x) of PyTorch.
  const std::string_view path = call.call->path;
  const std::string_view package = path.substr(0, path.find_last_of('.') + 1);
  return package == "torch." || package == "numpy." || package == "copy." ||
         package == "torch.cuda.";
}

bool has_parts(Kind kind) {
  return kind == Kind::list || kind == Kind::tuple || kind == Kind::argument_list ||
         kind == Kind::dictionary || kind == Kind::pair || kind == Kind::keyword_argument ||
         kind == Kind::binary;
}

// What says where and among how many is reduced: device, world_size, args.gpus.
bool is_setting(Ref at, const std::string& name) {
  for (const std::string_view setting : {"args", "cfg", "config", "opt", "opts", "hparams"})
    if (name == setting) return true;
  return says_any(name, {"device", "world", "rank", "gpu", "group"}) ||
         !at.module->import_path(name).empty();
}

// x for x.item(), torch.tensor([x, y]) and [x, y]; nothing for what a call computes on the way, as
// in reduce(accuracy(output, target)).
VariableNames variables_given(const Program& program, Ref value) {
  VariableNames out;
  std::vector<Ref> pending{value};
  while (!pending.empty()) {
    Ref at = pending.back();
    pending.pop_back();
    if (const CallRef call = program.as_call(at)) {
      at = passes_figures(call) ? at.child(Field::arguments) : call.receiver();
      if (!at) continue;
    }
    const auto& tree = at.module->tree();
    if (at.kind() == Kind::call) {
      pending.push_back(at);
    } else if (!has_parts(at.kind())) {
      for (const std::string& name : variables_in(at))
        if (!is_setting(at, name)) out.insert(name);
    } else {
      for (NodeId part = tree[at.node].first_child; part != diagnose::kNoNode;
           part = tree[part].next_sibling)
        pending.push_back(at.with(part));
    }
  }
  return out;
}

}  // namespace

VariableNames reduced_in(const Program& program, FunctionRef function,
                         const std::vector<Reduction>& reductions) {
  VariableNames out;
  const Ref body{function.module, function.function->body};
  const auto& tree = body.module->tree();
  const auto add = [&](Ref value) {
    if (value) out.merge(variables_given(program, value));
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
      out.merge(variables_in(body.with(def.target)));
  // top1.update(reduce(accuracy), n): what is added is reduced already.
  for (const CallRef& call : facts::calls_in(body))
    if ((call.call->name == "update" || call.call->name == "append" ||
         call.call->name == "extend") &&
        call.receiver() && std::any_of(places.begin(), places.end(), [&](NodeId place) {
          return tree.contains(call.ref().child(Field::arguments).node, place);
        }))
      out.merge(variables_in(call.receiver()));
  for (const Assigned& each : additions_in(body))
    if (each.value && std::any_of(places.begin(), places.end(), [&](NodeId place) {
          return tree.contains(each.value.node, place);
        }))
      out.insert(each.name);
  return out;
}

bool may_reduce(const Program& program, Ref loop, const std::string& sum,
                const std::vector<Reduction>& reductions) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || program.mentions("torchmetrics") || program.mentions("process_id")) return true;
  for (const Reduction& reduction : reductions) {
    const FunctionRef there = program.enclosing_function(reduction.call);
    const bool inside = there == function || enters(program, function, there);
    if (inside ? !reduction.value : serves(program, reduction, function)) return true;
  }
  // What is reduced batch by batch may be in the sum already.
  for (const CallRef& call : facts::calls_in(loop)) {
    const FunctionRef helper = program.callee(call);
    for (const Reduction& reduction : reductions) {
      const FunctionRef there = program.enclosing_function(reduction.call);
      if (reduction.call == call.ref() ||
          (helper && (there == helper || enters(program, helper, there))))
        return true;
    }
  }
  const VariableNames reduced = reduced_in(program, function, reductions);
  const std::vector<Assigned> assigned = assignments_in({function.module, function.function->body});
  VariableNames made = with_wholes({sum});  // totals[0] of all_reduce(totals)
  // log.meters["acc"] of log.synchronize_between_processes(): the object holds its meters.
  const std::string object = sum.substr(0, sum.find('.'));
  if (sum.ends_with("]") && object != "self" && object.size() < sum.find('[') &&
      std::any_of(reductions.begin(), reductions.end(), [&](const Reduction& reduction) {
        const CallRef call = program.as_call(reduction.call);
        return call && call.module == loop.module && call.receiver().text() == object;
      }))
    return true;
  for (bool grown = true; grown;) {
    grown = false;
    for (const Assigned& each : assigned)
      if (meet(variables_in(each.value), made)) grown = made.insert(each.name).second || grown;
  }
  return meet(made, reduced);
}

}  // namespace bench::pitfalls
