#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/forgotten_number.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/loaders.hpp"
#include "scenarios/pitfalls/trial_prices.hpp"

#include <algorithm>
#include <cmath>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

struct Reduction {
  Ref call;
  Ref value;  // what is reduced; empty where that cannot be told
};

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

// Collectives of the program, and calls of helpers elsewhere whose name says so.
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
      const bool reduces = says_reduction(name);
      if (reduces && made.api != Api::all_reduce && !program.callee(call))
        out.push_back({call.ref(), call.positional(0)});
    }
  return out;
}

bool enters(const Program& program, FunctionRef from, FunctionRef to) {
  if (!from || !to) return false;
  const auto reached = program.reached({from.module, from.function->body});
  return std::find(reached.begin(), reached.end(), to) != reached.end();
}

// What the evaluation computes may be reduced there: in its function or what that calls, or, where
// its result is, in a caller.
bool serves(const Program& program, const Reduction& reduction, FunctionRef evaluation, int depth) {
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
             return serves(program, {site.ref(), value}, evaluation, depth + 1);
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

bool is_reduced(const Program& program, Ref loop, const std::vector<Reduction>& reductions) {
  if (program.mentions("torchmetrics")) return true;
  const FunctionRef evaluation = program.enclosing_function(loop);
  return std::any_of(reductions.begin(), reductions.end(), [&](const Reduction& reduction) {
    return serves(program, reduction, evaluation, 0);
  });
}

// np.savetxt(f"part.{rank}.txt", ...), also where the path has a name of its own.
bool is_named_by_rank(const Program& program, const CallRef& call) {
  const auto is_path = [&](Ref value) {
    return facts::contains(value.text(), "{") && program.mentions_rank(value);
  };
  if (is_path(call.ref())) return true;
  const auto& tree = call.module->tree();
  for (NodeId at = call.call->node; at < tree[call.call->node].last; ++at) {
    if (tree[at].kind != Kind::identifier) continue;
    const auto sources = program.sources(call.ref().with(at));
    if (std::any_of(sources.begin(), sources.end(),
                    [&](const diagnose::Source& source) { return is_path(source.ref); }))
      return true;
  }
  return false;
}

// The evaluation writes what it found into a file for each rank and waits for the others: one rank
// reads all of them.
bool goes_through_files(const Program& program, Ref loop) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function) return false;
  const Ref body{function.module, function.function->body};
  const auto calls = facts::calls_in(body);
  const bool waits = std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return call.call->api == Api::barrier || call.call->name == "synchronize";
  });
  return waits && std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
           const std::string_view name = call.call->name;
           return (name == "savetxt" || name == "save" || name == "savez" || name == "dump") &&
                  is_named_by_rank(program, call);
         });
}

// One rank evaluates, over a loader that a helper makes with and without a sampler: it may well see
// all the data.
bool one_rank_may_see_all(const Program& program, Ref loop, const CallRef& loader) {
  if (program.guarded_by_rank(loop) != diagnose::RankTest::main_only) return false;
  const auto samplers = program.sources(loader.keyword("sampler"));
  return std::any_of(samplers.begin(), samplers.end(), [](const diagnose::Source& source) {
    return source.ref.kind() == Kind::none_literal;
  });
}

// for batch in loader: yield batch: the times it adds up are its own, whoever asks for the batches
// computes the metric.
bool hands_batches_on(Ref loop) {
  const auto& tree = loop.module->tree();
  const Ref body = loop.child(Field::body);
  for (NodeId at = body.node; body && at < tree[body.node].last; ++at)
    if (tree[at].kind == Kind::yield_expression) return true;
  return false;
}

// A value that is accumulated in the loop: total += ..., losses.append(...).
bool accumulates(const Program& program, Ref loop) {
  const auto& tree = loop.module->tree();
  for (const NodeId node : loop.module->nodes_of(Kind::augmented_assignment))
    if (tree.contains(loop.node, node)) return true;
  for (const CallRef& call : facts::calls_in(loop)) {
    if (call.call->name != "append" && call.call->name != "update") continue;
    // A list that starts anew in every round holds nothing across batches.
    const auto sources = program.sources(call.receiver());
    if (std::none_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
          return source.ref.module == loop.module && tree.contains(loop.node, source.ref.node);
        }))
      return true;
  }
  return false;
}

// The function around the loop, or the one that this is nested in.
FunctionRef outermost_function(const Program& program, Ref node) {
  FunctionRef function = program.enclosing_function(node);
  while (function && function.function->owner_class == diagnose::kNoNode) {
    const FunctionRef outer =
        program.enclosing_function({function.module, function.function->node});
    if (!outer || outer == function) break;
    function = outer;
  }
  return function;
}

// meter.all_reduce() of a class of this program, for each such method.
std::vector<FunctionRef> reducing_methods(const Program& program,
                                          const std::vector<Reduction>& reductions) {
  std::vector<FunctionRef> out;
  for (const Reduction& reduction : reductions)
    if (const FunctionRef method = program.enclosing_function(reduction.call);
        method && method.function->owner_class != diagnose::kNoNode)
      out.push_back(method);
  return out;
}

// top5.all_reduce() and return top1.avg: one of two meters is reduced, and the other decides.
void check_forgotten_meters(const Program& program, FunctionRef evaluation,
                            const std::vector<FunctionRef>& methods, Report& report) {
  if (!evaluation) return;
  const Ref body{evaluation.module, evaluation.function->body};
  const auto calls = facts::calls_in(body);
  const auto is_meter = [&](const CallRef& call, FunctionRef method) {
    return call.receiver().kind() == Kind::identifier &&
           program.class_of(call.receiver()) ==
               program.enclosing_class({method.module, method.function->body});
  };
  for (const FunctionRef& method : methods) {
    std::vector<std::string_view> reduced;
    for (const CallRef& call : calls)
      if (call.call->name == method.function->name && is_meter(call, method))
        reduced.push_back(call.receiver().text());
    if (reduced.empty()) continue;
    const auto& tree = body.module->tree();
    for (const CallRef& call : calls) {
      const std::string name(call.receiver() ? call.receiver().text() : std::string_view{});
      if (call.call->name != "update" || !is_meter(call, method) ||
          std::find(reduced.begin(), reduced.end(), name) != reduced.end())
        continue;
      for (NodeId at = body.node; at < tree[body.node].last; ++at) {
        if (tree[at].kind != Kind::return_statement || !facts::contains(tree.text(at), name + "."))
          continue;
        report
            .at(body.with(at), Confidence::likely,
                "'" + name + "' is that of one rank's part of the data: '" +
                    std::string(reduced.front()) + "' beside it is reduced and it is not")
            .help = "Call " + name + "." + std::string(method.function->name) + "() too.";
        return;
      }
    }
  }
}

// What reductions of the function, and helpers it calls that reduce, are given and return.
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

// dist.all_reduce(correct), and loss / n is returned beside it.
bool tells_forgotten_number(const Program& program, Ref loop,
                            const std::vector<Reduction>& reductions, Report& report) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || program.mentions("torchmetrics")) return false;
  for (const Reduction& reduction : reductions) {
    const FunctionRef there = program.enclosing_function(reduction.call);
    const bool inside = there == function || enters(program, function, there);
    if (inside ? !reduction.value : serves(program, reduction, function, 0)) return false;
  }
  const ForgottenNumber found =
      forgotten_number(program, loop, reduced_in(program, function, reductions));
  if (!found) return false;
  report
      .at(found.use, Confidence::likely,
          "'" + found.name + "' is that of one rank's part of the data: '" + found.reduced +
              "' beside it is reduced and it is not")
      .help = "Reduce '" + found.name + "' too.";
  return true;
}

}  // namespace

void check_metric_not_reduced(const Program& program, Report& report) {
  for (const CallRef& log : program.calls_named("log")) {
    if (!log.receiver() || log.receiver().text() != "self" || log.keyword("sync_dist")) continue;
    const ClassRef cls = program.enclosing_class(log.ref());
    if (!cls || !program.derives_from(cls, Api::lightning_module)) continue;
    const FunctionRef step = program.enclosing_function(log.ref());
    if (!step || (step.function->name != "validation_step" && step.function->name != "test_step"))
      continue;
    Finding& finding = report.at(log.ref(), Confidence::check,
                                 "the logged value is that of one rank's shard unless "
                                 "sync_dist=True (torchmetrics objects excepted)");
    finding.severity = Severity::info;
    finding.help = "Pass sync_dist=True for values logged once an epoch.";
  }
  const bool by_hand = program.has_ddp() && !program.framework_distributes();
  if (!by_hand && !program.uses(Api::hvd_init)) return;
  const std::vector<Reduction> reductions = reductions_of(program);
  const std::vector<FunctionRef> methods = reducing_methods(program, reductions);
  for (const Module* module : program.modules())
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      if (loop.kind() != Kind::for_statement || hands_batches_on(loop) ||
          !accumulates(program, loop))
        continue;
      for (const CallRef& loader : loaders_of(program, loop.child(Field::right))) {
        if (sampler_of(program, loader) && is_evaluation_loader(program, loader))
          check_forgotten_meters(program, outermost_function(program, loop), methods, report);
        if (sampler_of(program, loader) && is_evaluation_loader(program, loader) &&
            !goes_through_files(program, loop) && !one_rank_may_see_all(program, loop, loader) &&
            tells_forgotten_number(program, loop, reductions, report))
          break;
        if (!sampler_of(program, loader) ||
            (!is_evaluation_loader(program, loader) && !is_evaluation_loop(program, loop)) ||
            is_reduced(program, loop, reductions) || goes_through_files(program, loop) ||
            one_rank_may_see_all(program, loop, loader))
          continue;
        report
            .at(loop, Confidence::likely,
                "each rank evaluates its own shard and nothing is reduced: the metric is that of "
                "one "
                "rank's part of the data")
            .help = "All-reduce the sum and the count before dividing.";
        break;
      }
    }
}

namespace {

// Training ended after unequal numbers of epochs.
bool stopped_apart(const RunEvidence& run) { return ranks_differ(run, "epochs_trained"); }

}  // namespace

void judge_metric_not_reduced(const RunEvidence& run, RunReport& report) {
  if (!ranks_differ(run, "decisive_metric")) return;
  std::string message =
      "ranks decide by validation metrics of their own: " + rank_figures(run, "decisive_metric", 3);
  if (ranks_differ(run, "final_learning_rate"))
    message += "; their learning rates are " + rank_figures(run, "final_learning_rate", 5);
  if (stopped_apart(run))
    message += "; they stopped after " + rank_figures(run, "epochs_trained") + " epochs";
  Finding& finding = report.add(Confidence::certain, std::move(message));
  finding.help = "All-reduce sum and count before anything is decided.";
  finding.evidence.emplace_back("metric by rank", rank_figures(run, "decisive_metric", 4));
}

Price price_metric_not_reduced(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const bool apart = ranks_differ(broken, "decisive_metric");
  const bool agreed =
      cured.first("decisive_metric") != nullptr && !ranks_differ(cured, "decisive_metric");
  if (broken.first("final_learning_rate") != nullptr) {
    price.reproduced = apart && ranks_differ(broken, "weights_after");
    price.gone = agreed && !ranks_differ(cured, "weights_after");
    price.cost = rank_spread(broken, "weights_after");
    price.unit = "difference of weight sums between ranks";
    price.seen =
        "silent: each rank lowers its learning rate in epochs of its own, and the models drift "
        "apart";
  } else if (broken.first("epochs_trained") != nullptr) {
    price.reproduced = apart && !broken.hung_ranks().empty();
    price.gone = agreed && cured.hung_ranks().empty() && !stopped_apart(cured);
    price.cost = broken.document().value("limit_seconds", 0.0);
    price.unit = "s hung until the time-out";
    const std::vector<double> epochs = rank_values(broken, "epochs_trained");
    if (!epochs.empty())
      price.seen = "nothing is printed: one rank stops after " +
                   figure(*std::min_element(epochs.begin(), epochs.end())) +
                   " epochs, the other waits for it in the next";
  } else {
    price.reproduced = apart;
    price.gone = agreed && cured.number("accuracy_of_chosen") == cured.number("accuracy_of_best");
    price.cost =
        100 * std::fabs(broken.number("decisive_metric") - broken.number("accuracy_of_chosen"));
    price.unit =
        "accuracy points that rank 0's figure is wrong by (and " +
        figure(100 * (broken.number("accuracy_of_best") - broken.number("accuracy_of_chosen")), 2) +
        " points below the best checkpoint)";
    price.seen = "silent: rank 0 reports " + figure(100 * broken.number("decisive_metric")) +
                 " %, the whole set gives " + figure(100 * broken.number("accuracy_of_chosen")) +
                 " %";
  }
  return price;
}

}  // namespace bench::pitfalls
