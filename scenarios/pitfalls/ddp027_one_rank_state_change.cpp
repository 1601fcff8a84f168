#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/horovod_models.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_optimizers.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/steps/one_rank_optimizer.hpp"
#include "scenarios/pitfalls/steps/sent_rates.hpp"
#include "scenarios/pitfalls/wrappers/late_weights.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::RankTest;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// net for net.load_state_dict() and net.module.load_state_dict().
Ref model_loaded(const CallRef& load) {
  const Ref model = load.receiver();
  const bool is_inner =
      model.kind() == Kind::attribute && model.child(Field::attribute).text() == "module";
  return is_inner ? model.child(Field::object) : model;
}

// The wrapper of which load_state_dict() is called, or of the model inside; null where it is none.
const Wrap* wrapper_loaded(const Program& program, const CallRef& load) {
  return load.receiver() ? program.wrap_of(model_loaded(load), Wrapper::ddp) : nullptr;
}

// The other ranks load as well: if rank == 0: load, and if rank != 0: load in the same function,
// into the same wrapper or into what has its name on these ranks.
bool others_load(const Program& program, const CallRef& load, const Wrap* wrap) {
  const RankTest here = program.guarded_by_rank(load.ref());
  const auto loads = program.calls_named("load_state_dict");
  return std::any_of(loads.begin(), loads.end(), [&](const CallRef& other) {
    const RankTest there = program.guarded_by_rank(other.ref());
    return there != RankTest::none && there != here && other.receiver() &&
           (wrapper_loaded(program, other) == wrap ||
            program.same_variable(model_loaded(other), model_loaded(load))) &&
           program.enclosing_function(other.ref()) == program.enclosing_function(load.ref());
  });
}

// load_for(rank, net), a helper that loads into what it is given.
bool loads_into(const Program& program, const CallRef& call, Ref model) {
  bool is_given = false;
  for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
    is_given = is_given || program.same_variable(argument, model);
  return is_given && program.callee(call) &&
         program.subtree_calls(call.ref(), [&](const CallRef& each) {
           return each.call->name == "load_state_dict" && wrapper_loaded(program, each) != nullptr;
         });
}

// In the two branches of a test of the rank, and not of one of something else.
bool are_of_other_ranks(const Program& program, const CallRef& a, const CallRef& b) {
  const RankTest ours = program.guarded_by_rank(a.ref());
  const RankTest theirs = program.guarded_by_rank(b.ref());
  return ours != RankTest::none && theirs != RankTest::none && ours != theirs &&
         facts::exclusive(a.ref(), b.ref());
}

// elif rank: load_for(rank, net), beside the load in the branch of the first rank, whichever of the
// two the load is.
bool others_load_in_helper(const Program& program, const CallRef& load) {
  const auto calls = facts::calls_in({load.module, load.module->function_of(load.call->node)});
  if (std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
        return are_of_other_ranks(program, call, load) &&
               loads_into(program, call, model_loaded(load));
      }))
    return true;
  const FunctionRef helper = program.enclosing_function(load.ref());
  if (!helper) return false;
  const auto loads = program.calls_named("load_state_dict");
  const auto& sites = program.call_sites(helper);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return std::any_of(loads.begin(), loads.end(), [&](const CallRef& other) {
      return other.receiver() && other.module == site.module &&
             are_of_other_ranks(program, other, site) &&
             loads_into(program, site, model_loaded(other));
    });
  });
}

// Something is trained below, or in another round of a loop around.
bool trains_afterwards(const Program& program, Ref load) {
  const auto around = program.loops_around(load);
  const auto& loops = program.training_loops();
  return loops.empty() ||
         std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
           if (program.runs_before(load, loop.batches)) return true;
           const auto rounds = program.loops_around(
               loop.backwards.empty() ? loop.batches : loop.backwards.front().ref());
           return std::any_of(around.begin(), around.end(), [&](Ref each) {
             return std::find(rounds.begin(), rounds.end(), each) != rounds.end();
           });
         });
}

// if rank == 3: a whole loop that steps, else: the same loop again. Below one test of the rank,
// another question parts the two: if by_metric: step(loss) else: step().
bool steps_in_other_branch(const Program& program, const CallRef& step) {
  const auto steps = program.calls_named("step");
  return std::any_of(steps.begin(), steps.end(), [&](const CallRef& other) {
    return other.receiver() && program.guarded_by_rank(other.ref()) != RankTest::none &&
           (program.rank_guard(other.ref()) != program.rank_guard(step.ref()) ||
            program.guarded_by_rank(other.ref()) != program.guarded_by_rank(step.ref())) &&
           program.same_variable(diagnose::seen_above(program, other.receiver()),
                                 diagnose::seen_above(program, step.receiver())) &&
           never_both(program, step.ref(), other.ref());
  });
}

// The other ranks step as well: if rank == 0: log, scheduler.step(); else: scheduler.step().
bool others_step(const Program& program, const CallRef& step) {
  const RankTest here = program.guarded_by_rank(step.ref());
  const auto steps = program.calls_named("step");
  return std::any_of(steps.begin(), steps.end(), [&](const CallRef& other) {
    return other.call != step.call && program.guarded_by_rank(other.ref()) != here &&
           other.receiver() && program.same_variable(other.receiver(), step.receiver());
  });
}

// Ranks other than that of the call do the same in a branch of their own.
bool others_initialise(const Program& program, const CallRef& call, const Wrap* wrap) {
  const auto& calls = call.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& made) {
    const CallRef other{call.module, &made};
    return other.call != call.call && initialises(other) &&
           wrapper_loaded(program, other) == wrap &&
           program.guarded_by_rank(other.ref()) != program.guarded_by_rank(call.ref());
  });
}

void check_weights_of_one_rank(const Program& program, Report& report) {
  for (const CallRef& call : program.calls_that(may_initialise)) {
    if (!call.receiver() || !initialises(call) ||
        program.guarded_by_rank(call.ref()) == RankTest::none)
      continue;
    const Wrap* wrap = wrapper_loaded(program, call);
    if (wrap == nullptr || !program.runs_before(wrap->call.ref(), call.ref()) ||
        others_initialise(program, call, wrap) || !trains_afterwards(program, call.ref()))
      continue;
    report
        .at(call.ref(), Confidence::certain,
            "one rank alone initialises weights after the model was wrapped: DDP copies "
            "parameters between ranks only when it is built, so the others keep theirs")
        .help = "Initialise before wrapping.";
  }
}

// The model that is trained, below its wrapper: accelerator.unwrap_model(model), model.module.
bool is_live_model(const Program& program, Ref model) {
  if (program.wrap_of(model) != nullptr || model.text().ends_with(".module")) return true;
  for (const diagnose::Source& source : program.sources(model)) {
    const CallRef made = program.as_call(source.ref);
    if ((made && made.call->name == "unwrap_model") || source.ref.text().ends_with(".module"))
      return true;
  }
  return false;
}

// ema.step(nets.parameters()): what the average follows is what is trained.
bool is_followed_by(const Program& program, Ref average, Ref model) {
  for (const char* name : {"step", "update"})
    for (const CallRef& follows : program.calls_named(name)) {
      const CallRef parameters = program.made_by(follows.positional(0));
      if (follows.receiver() && parameters && parameters.call->name == "parameters" &&
          parameters.receiver() && program.same_variable(follows.receiver(), average) &&
          program.same_variable(parameters.receiver(), model))
        return true;
    }
  return false;
}

// ema.copy_to(model.parameters()) for an evaluation, or a file, of one rank: where nothing puts the
// weights back, that rank trains on with others than the rest.
void check_copies_on_one_rank(const Program& program, Report& report) {
  for (const char* undo : {"restore", "store", "swap", "average_parameters"})
    if (!program.calls_named(undo).empty()) return;
  for (const CallRef& copy : program.calls_named("copy_to")) {
    const CallRef parameters = program.made_by(copy.positional(0));
    if (!copy.receiver() || !parameters || parameters.call->name != "parameters" ||
        !parameters.receiver() || program.guarded_by_rank(copy.ref()) != RankTest::main_only ||
        program.loops_around(copy.ref()).empty() ||
        !(is_live_model(program, parameters.receiver()) ||
          is_followed_by(program, copy.receiver(), parameters.receiver())) ||
        !trains_afterwards(program, copy.ref()))
      continue;
    report
        .at(copy.ref(), Confidence::likely,
            "one rank alone overwrites the weights of the model that is trained: nothing puts them "
            "back, and the replicas stay apart from here")
        .help = "Copy into a copy of the model, or store() before and restore() after.";
  }
}

// if rank == 0: serve() else: work(), where work() makes the optimizer: the first rank has none,
// and no weights that could fall behind.
bool is_made_on_these_ranks(const Program& program, const CallRef& step, Api api) {
  const CallRef made = program.origin(step.receiver(), api);
  return made && program.guarded_by_rank(step.ref()) == RankTest::not_main &&
         program.guarded_by_rank(made.ref()) == RankTest::not_main;
}

// The same function loads in the other branch of the test too.
bool others_call(const Program& program, const CallRef& load) {
  const auto calls = program.calls_named(load.call->name);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& other) {
    return other.call != load.call &&
           program.guarded_by_rank(other.ref()) != program.guarded_by_rank(load.ref()) &&
           program.enclosing_function(other.ref()) == program.enclosing_function(load.ref());
  });
}

// if rank == 0: load_checkpoint(path, net), of a file that is not there, below net = DDP(net).
void check_helpers_that_load(const Program& program, Report& report) {
  const auto is_named_so = [](std::string_view name) {
    return facts::lowered(name).starts_with("load_");
  };
  for (const CallRef& call : program.calls_that(is_named_so)) {
    if (call.call->api != Api::none || program.callee(call) || program.class_of_call(call) ||
        program.guarded_by_rank(call.ref()) != RankTest::main_only ||
        !facts::is_reachable(program, call.ref()))
      continue;
    for (const Ref each : facts::arguments_of(call)) {
      const Wrap* wrap = program.wrap_of(each, Wrapper::ddp);
      if (wrap == nullptr || !program.runs_before(wrap->call.ref(), call.ref()) ||
          facts::exclusive(wrap->call.ref(), call.ref()) ||
          !trains_afterwards(program, call.ref()) || program.mentions("broadcast_object") ||
          others_call(program, call))
        continue;
      report
          .at(call.ref(), Confidence::likely,
              std::string(call.call->name) +
                  "() on one rank alone, after the model was wrapped: DDP copies parameters "
                  "between ranks only when it is built, so the others keep theirs")
          .help = "Load before wrapping, or on every rank.";
      break;
    }
  }
}

// Which ranks step, where not all of them do.
std::string who_steps(const Program& program, const CallRef& step) {
  return program.guarded_by_rank(step.ref()) == RankTest::main_only
             ? "one rank alone steps "
             : "every rank but the first steps ";
}

constexpr std::string_view kSchedulerStep =
    "the scheduler: the others keep their learning rate, and the replicas drift apart from here";

// Nothing is made of what it gives: lr = engine.step_lr(epoch) asks for a value.
bool stands_alone(const CallRef& call) {
  const auto& tree = call.module->tree();
  return tree[tree[call.call->node].parent].kind == Kind::expression_statement;
}

// self.optim.scheduler_step(loss) of an object that is not here and keeps the scheduler.
void check_hidden_schedulers(const Program& program, Report& report) {
  for (const std::string_view name :
       {"scheduler_step", "step_scheduler", "lr_scheduler_step", "lr_step", "step_lr",
        "update_learning_rate", "step_lr_scheduler"}) {
    const auto steps = program.calls_named(name);
    for (const CallRef& step : steps) {
      const RankTest here = program.guarded_by_rank(step.ref());
      const bool shared = std::any_of(steps.begin(), steps.end(), [&](const CallRef& other) {
        return never_both(program, step.ref(), other.ref()) &&
               program.guarded_by_rank(other.ref()) != here;
      });
      if (here == RankTest::none || program.callee(step) || shared || !stands_alone(step) ||
          program.loops_around(step.ref()).empty() || hands_learning_rate_on(program))
        continue;
      report
          .at(step.ref(), Confidence::likely,
              who_steps(program, step) + std::string(kSchedulerStep))
          .help = "Step the scheduler on every rank.";
    }
  }
}

// group["lr"] = rate and group["lr"] *= 0.9 of for group in optimizer.param_groups.
bool sets_learning_rate(const Program& program, Ref target) {
  const auto& tree = target.module->tree();
  const Kind line = tree[tree[target.node].parent].kind;
  if (tree[target.node].field != Field::left ||
      (line != Kind::assignment && line != Kind::augmented_assignment) ||
      tree.string_value(tree.child(target.node, Field::subscript)).value_or("") != "lr")
    return false;
  const Ref group = target.child(Field::value);
  const auto is_group = [](Ref each) {  // optimizer.param_groups[0]
    return each.kind() == Kind::subscript &&
           each.child(Field::value).text().ends_with("param_groups");
  };
  if (is_group(group)) return true;
  const auto sources = program.sources(group);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return is_group(source.ref) || (source.how == diagnose::Source::How::loop_item &&
                                    source.ref.text().find("param_groups") != std::string::npos);
  });
}

bool runs_in_training(const Program& program, Ref node) {
  const auto around = program.loops_around(node);
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
    return std::any_of(around.begin(), around.end(),
                       [&](Ref each) { return each == loop.epochs || each == loop.batches; });
  });
}

// if rank == 0: for group in optimizer.param_groups: group["lr"] *= 0.9, in a loop that trains.
// What other lines of it write, on the other ranks, may be the same rate.
void check_rates_of_one_rank(const Program& program, Report& report) {
  std::vector<Ref> lines;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::NodeId node : module->nodes_of(Kind::subscript)) {
      const Ref target{module, node};
      if (!sets_learning_rate(program, target) || !runs_in_training(program, target)) continue;
      if (program.guarded_by_rank(target) != RankTest::main_only) return;
      if (facts::is_reachable(program, target)) lines.push_back(target);
    }
  if (lines.empty()) return;
  for (const char* name :
       {"broadcast_optimizer_state", "broadcast_object", "broadcast_object_list"})
    for (const CallRef& call : program.calls_named(name))
      if (runs_in_training(program, call.ref())) return;
  in_no_trial(report.at(lines.front(), Confidence::likely,
                        "one rank alone changes its learning rate: the others keep theirs, and "
                        "the replicas drift apart from here"))
      .help = "Change it on every rank.";
}

// What a helper out of sight gives is known by the helper's name alone.
Confidence confidence_in(const CallRef& made, Api api) {
  return made.call->api == api ? Confidence::certain : Confidence::likely;
}

void check_steps_of_one_rank(const Program& program, Report& report) {
  for (const CallRef& step : program.calls_named("step")) {
    if (!step.receiver() || program.guarded_by_rank(step.ref()) == RankTest::none) continue;
    if (steps_in_other_branch(program, step) ||
        is_made_on_these_ranks(program, step, Api::optimizer) ||
        is_made_on_these_ranks(program, step, Api::scheduler))
      continue;
    const CallRef made = program.origin(step.receiver(), Api::optimizer);
    if (made && has_own_parameters(program, made)) continue;
    if (made)
      report
          .at(step.ref(), confidence_in(made, Api::optimizer),
              who_steps(program, step) + "its optimizer: the replicas drift apart from here")
          .help = "Step on every rank.";
    else if (const CallRef scheduler = program.origin(step.receiver(), Api::scheduler);
             scheduler && !others_step(program, step) &&
             !program.loops_around(step.ref()).empty() && !hands_learning_rate_on(program))
      report
          .at(step.ref(), confidence_in(scheduler, Api::scheduler),
              who_steps(program, step) + std::string(kSchedulerStep))
          .help = "Step the scheduler on every rank.";
  }
}

// The model that the call makes known to the other ranks:
// hvd.broadcast_parameters(net.state_dict()).
bool sends(const Program& program, const CallRef& broadcast, Ref model) {
  const CallRef given = program.made_by(broadcast.argument(0, "params"));
  return given && given.receiver() &&
         (given.receiver().text() == model.text() || same_model(program, given.receiver(), model));
}

// if hvd.rank() == 0: net.load_state_dict(...) below the broadcast, which is not made again.
void check_loads_below_broadcast(const Program& program, Report& report) {
  const auto broadcasts = program.calls(Api::hvd_broadcast_parameters);
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Ref node = load.ref();
    if (!load.receiver() || program.guarded_by_rank(node) != RankTest::main_only ||
        !facts::is_reachable(program, node) || program.mentions("broadcast_object"))
      continue;
    const bool sent = std::any_of(broadcasts.begin(), broadcasts.end(), [&](const CallRef& each) {
      return sends(program, each, load.receiver()) && program.runs_before(each.ref(), node);
    });
    const bool again = std::any_of(broadcasts.begin(), broadcasts.end(), [&](const CallRef& each) {
      return program.runs_before(node, each.ref());
    });
    if (!sent || again) continue;
    report
        .at(node, Confidence::likely,
            "one rank alone loads weights below the broadcast of the parameters: the others keep "
            "theirs, and stay different")
        .help = "Load above hvd.broadcast_parameters, or on every rank.";
  }
}

}  // namespace

void check_one_rank_state_change(const Program& program, Report& report) {
  if (program.has_ddp() || program.uses(Api::hvd_init) || accelerate_wraps(program)) {
    check_steps_of_one_rank(program, report);
    check_hidden_schedulers(program, report);
    check_rates_of_one_rank(program, report);
    check_copies_on_one_rank(program, report);
  }
  if (program.uses(Api::hvd_init)) check_loads_below_broadcast(program, report);
  if (program.has_ddp() || accelerate_wraps(program)) check_optimizer_of_one_rank(program, report);
  if (!program.has_ddp()) return;
  check_weights_of_one_rank(program, report);
  check_helpers_that_load(program, report);
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Ref receiver = load.receiver();
    if (!receiver || program.guarded_by_rank(load.ref()) == RankTest::none) continue;
    // The averaged copy that one rank keeps for evaluation.
    if (receiver.text().find("ema") != std::string_view::npos) continue;
    const Wrap* wrap = wrapper_loaded(program, load);
    if (wrap == nullptr || !program.runs_before(wrap->call.ref(), load.ref()) ||
        others_load(program, load, wrap) || others_load_in_helper(program, load) ||
        !trains_afterwards(program, load.ref()))
      continue;
    as_in_trial(
        report.at(load.ref(), Confidence::certain,
                  "one rank alone loads weights after the model was wrapped: DDP copies parameters "
                  "between ranks "
                  "only when it is built, so the others keep theirs"),
        "load-on-rank-0")
        .help = "Load before wrapping, or on every rank.";
  }
  for (const Wrap& wrap : program.wraps())
    if (const Ref flag = wrap.call.keyword("init_sync"); flag && program.is_literal_false(flag))
      report
          .at(flag, Confidence::check,
              "init_sync=False: ranks start from whatever weights they built")
          .help = "Leave it out unless every rank builds identical weights.";
}

void judge_one_rank_state_change(const RunEvidence& run, RunReport& report) {
  // Learning rates that differ explain weights that differ, and are another rule's.
  if (run.first("optimizer_steps") == nullptr || !ranks_differ(run, "weights_after")) return;
  const bool skipped = ranks_differ(run, "optimizer_steps");
  Finding& finding = report.add(
      Confidence::certain,
      (skipped ? "the ranks made " + rank_figures(run, "optimizer_steps") + " optimizer steps"
               : std::string("one rank's weights were changed after wrapping")) +
          ": weight sums " + rank_figures(run, "weights_after", 3) + " by rank");
  finding.help = skipped ? "All-reduce found_inf, so that all ranks skip the step or none."
                         : "Load before wrapping, or on all ranks.";
  finding.evidence.emplace_back("weight sums", rank_figures(run, "weights_after", 6));
}

Price price_one_rank_state_change(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.cost = rank_spread(broken, "weights_after");
  price.reproduced = ranks_differ(broken, "weights_after");
  price.gone = cured.first("weights_after") != nullptr && !ranks_differ(cured, "weights_after") &&
               !ranks_differ(cured, "optimizer_steps");
  price.unit = "difference of weight sums between ranks";
  price.seen = "silent: weight sums " + rank_figures(broken, "weights_after", 3) + " after " +
               rank_figures(broken, "optimizer_steps") + " optimizer steps";
  return price;
}

}  // namespace bench::pitfalls
