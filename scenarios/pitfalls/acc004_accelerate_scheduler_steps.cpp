#include "diagnose/model/made_at.hpp"
#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"
#include "scenarios/pitfalls/steps/schedule_length.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// The batch size is split, or the scheduler is told not to follow the optimizer: one step is one.
bool is_told_to_step_once(const Program& program) {
  for (const char* word :
       {"split_batches", "step_scheduler_with_optimizer", "AcceleratedScheduler"})
    if (program.mentions(word)) return true;
  return false;
}

// patience=accelerator.num_processes * 3
bool counts_processes(const CallRef& scheduler) {
  const auto& tree = scheduler.module->tree();
  for (NodeId node = scheduler.call->node; node < tree[scheduler.call->node].last; ++node)
    if (tree[node].kind == Kind::identifier && tree.text(node) == "num_processes") return true;
  return false;
}

// prepare(model, scheduler), and prepare(each) in a function that hands back what it gives.
std::vector<Ref> given_to(const Program& program, const CallRef& prepare) {
  const auto function = program.enclosing_function(diagnose::made_at(program, prepare).ref());
  std::vector<Ref> out;
  for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
    if (const Ref seen = diagnose::seen_in(program, argument, function)) out.push_back(seen);
  return out;
}

bool is_prepared(const Program& program, const CallRef& scheduler, std::string_view name) {
  const CallRef made = diagnose::made_at(program, scheduler);
  for (const CallRef& prepare : program.calls_named("prepare")) {
    const CallRef there = diagnose::made_at(program, prepare);
    if (there.module != made.module || there.call->node < made.call->node) continue;
    for (const Ref argument : given_to(program, prepare))
      if (argument.text() == name) return true;
  }
  return false;
}

// for epoch in range(n): train_and_evaluate(...); scheduler.step(), with all loops over batches in
// functions that the loop calls.
bool is_behind_call_of_batches(const Program& program, const CallRef& step) {
  const Ref rounds = program.innermost_loop(step.ref());
  if (rounds.kind() != Kind::for_statement ||
      !facts::contains(rounds.child(diagnose::Field::right).text(), "range(") ||
      !says_any(rounds.child(diagnose::Field::left).text(), {"epoch"}))
    return false;
  const auto reached = program.reached(rounds);
  const auto& loops = program.training_loops();
  return !loops.empty() &&
         std::all_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
           return std::find(reached.begin(), reached.end(), loop.function) != reached.end();
         });
}

// scheduler.step() once an epoch: beside the batches of a training loop, in the loop around it.
bool is_step_of_epoch(const Program& program, const CallRef& step) {
  const auto around = program.loops_around(step.ref());
  const auto& loops = program.training_loops();
  if (around.empty()) return false;
  return std::any_of(loops.begin(), loops.end(),
                     [&](const diagnose::TrainingLoop& loop) {
                       return loop.epochs && loop.epochs != loop.batches &&
                              std::find(around.begin(), around.end(), loop.epochs) ==
                                  around.begin();
                     }) ||
         is_behind_call_of_batches(program, step);
}

// The first step() of the scheduler that is accepted.
template <typename Accepts>
CallRef step_of(const Program& program, const CallRef& scheduler, std::string_view name,
                const Accepts& accepts) {
  for (const CallRef& step : program.calls_named("step"))
    if (step.receiver().text() == name && step.module == scheduler.module && accepts(step))
      return step;
  return {};
}

// A learning rate that stays as it is may be stepped by any number of processes.
bool never_changes(const CallRef& scheduler) {
  return scheduler.call->name == "get_constant_schedule" ||
         facts::contains(scheduler.argument(0, "name").text(), "\"constant\"");
}

// scheduler.step(epoch) sets the number: done once for every process, it is the same one.
bool is_told_the_epoch(const CallRef& step) { return step.positional(0) || step.keyword("epoch"); }

// Stepped once an epoch, a prepared scheduler still advances once for every process.
void check_schedulers_of_epochs(const Program& program, Report& report) {
  for (const CallRef& scheduler : program.calls(Api::scheduler)) {
    const std::string_view name = program.assigned_name(scheduler.ref());
    // A schedule may be made for a number of steps that is multiplied elsewhere, patience is not.
    const bool waits = scheduler.call->name == "ReduceLROnPlateau";
    if (name.empty() || never_changes(scheduler) || !is_prepared(program, scheduler, name) ||
        (waits ? counts_processes(scheduler) : reckons_with_processes(program, scheduler)))
      continue;
    const CallRef step = step_of(program, scheduler, name, [&](const CallRef& each) {
      return is_step_of_epoch(program, each) && (waits || !is_told_the_epoch(each));
    });
    if (!step) continue;
    report
        .at(step.ref(), Confidence::likely,
            waits ? "a prepared scheduler passes the metric on once for every process in each "
                    "step(): counted in epochs, its patience runs out too early"
                  : "a prepared scheduler advances once for every process in each step(): counted "
                    "in epochs, its schedule ends too early")
        .help = "Do not prepare a scheduler that is stepped once an epoch.";
  }
}

// loader of len(loader), which prepare() is only given below: it has the batches of all processes.
bool is_prepared_below(const Program& program, const CallRef& length) {
  const Ref loader = length.positional(0);
  if (!loader) return false;
  const auto prepares = program.calls_named("prepare");
  return std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& prepare) {
    if (prepare.module != length.module || prepare.call->node < length.call->node) return false;
    const auto given = given_to(program, prepare);
    return std::any_of(given.begin(), given.end(), [&](Ref each) {
      return each.text() == loader.text() && program.same_variable(each, loader);
    });
  });
}

bool is_loader(const Program& program, Ref value) {
  return program.comes_from(value, Api::data_loader) ||
         says_any(diagnose::last_word(value), {"loader"});
}

bool counts_a_whole_loader(const Program& program, Ref number) {
  const auto calls = facts::calls_in(number);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->name == "len" && call.positional(0) &&
           is_loader(program, call.positional(0)) && is_prepared_below(program, call);
  });
}

// if args.steps is None: args.steps = ..., where the option has a default: nobody comes by.
bool is_for_a_missing_option(const Program& program, Ref value) {
  return program.under(value, [&](Ref condition, bool holds) {
    if (!holds || condition.kind() != Kind::comparison || !condition.text().ends_with(" is None"))
      return false;
    const auto& options = program.options_named(
        diagnose::last_word(condition.with(condition.module->tree().child_at(condition.node, 0))));
    return !options.empty() &&
           std::all_of(options.begin(), options.end(), [](const CallRef& option) {
             const Ref value = option.keyword("default");
             return value && value.kind() != Kind::none_literal;
           });
  });
}

// steps = epochs * per_epoch after per_epoch = ceil(len(loader) / k): batches are counted, also by
// way of names.
bool counts_batches(const Program& program, Ref number, int depth = 0) {
  constexpr int kNames = 3;
  const auto& tree = number.module->tree();
  if (counts_a_whole_loader(program, number)) return true;
  if (depth >= kNames) return false;
  for (NodeId at = number.node; at < tree[number.node].last; ++at) {
    const Ref part = number.with(at);
    if (!diagnose::stands_for_object(part) || part.kind() == Kind::subscript) continue;
    for (const diagnose::Source& source : program.sources(part))
      if (source.how == diagnose::Source::How::value && source.ref != part &&
          (source.ref.kind() == Kind::binary || source.ref.kind() == Kind::call) &&
          !is_for_a_missing_option(program, source.ref) &&
          counts_batches(program, source.ref, depth + 1))
        return true;
  }
  return false;
}

// The name of a number of steps that the schedule is made for: num_training_steps=args.steps.
// Empty where it is counted from the batches.
Ref horizon_of(const Program& program, const CallRef& scheduler) {
  for (const std::string_view name : {"num_training_steps", "T_max", "total_steps"}) {
    const Ref steps = scheduler.keyword(name);
    if (!diagnose::stands_for_object(steps)) continue;
    for (const diagnose::Source& source : program.sources(steps))
      if (!is_for_a_missing_option(program, source.ref) && counts_batches(program, source.ref))
        return {};
    return steps;
  }
  return {};
}

// while step < args.steps: ... and if step >= args.steps: break, around the node.
bool ends_at(const Program& program, Ref node, Ref steps) {
  const auto& tree = node.module->tree();
  const auto loops = program.loops_around(node);
  if (loops.empty() || loops.back().module != node.module) return false;
  for (const diagnose::NodeId at : node.module->nodes_of(Kind::comparison)) {
    if (!tree.contains(loops.back().node, at) || tree.child_count(at) != 2) continue;
    const diagnose::NodeId test = tree[at].parent;
    const bool decides =
        tree[test].kind == Kind::while_statement ||
        (tree[test].kind == Kind::if_statement && facts::contains(tree.text(test), "break"));
    if (decides && tree.text(tree.child_at(at, 1)) == steps.text()) return true;
  }
  return false;
}

// def factor(step): ... (step - warmup) / (args.steps - warmup): LambdaLR(optimizer, factor) is
// made for so many steps as the loop around step() takes.
bool divides_by_end_of_loop(const Program& program, const CallRef& scheduler, Ref step) {
  if (scheduler.call->name != "LambdaLR") return false;
  const Ref factor = scheduler.argument(1, "lr_lambda");
  for (const diagnose::Function& each : scheduler.module->functions()) {
    const auto& tree = scheduler.module->tree();
    if (factor.kind() != Kind::identifier || each.name != factor.text() ||
        each.node > factor.node ||
        program.enclosing_function({scheduler.module, each.node}) !=
            program.enclosing_function(factor))
      continue;
    for (NodeId at = each.body; at < tree[each.body].last; ++at) {
      if (tree[at].kind != Kind::binary || tree[at].op != diagnose::Op::divide) continue;
      const Ref divisor = factor.with(at).child(diagnose::Field::right);
      for (NodeId part = divisor.node; divisor && part < tree[divisor.node].last; ++part)
        if ((tree[part].kind == Kind::attribute || tree[part].kind == Kind::identifier) &&
            ends_at(program, step, factor.with(part)))
          return true;
    }
  }
  return false;
}

// The schedule ends with the training, counted in steps of one process, and is prepared.
void check_schedulers_of_steps(const Program& program, Report& report) {
  for (const CallRef& scheduler : program.calls(Api::scheduler)) {
    const std::string_view name = program.assigned_name(scheduler.ref());
    const Ref steps = horizon_of(program, scheduler);
    if (name.empty() || !is_prepared(program, scheduler, name) ||
        reckons_with_processes(program, scheduler))
      continue;
    if (!step_of(program, scheduler, name, [&](const CallRef& each) {
          return !is_step_of_epoch(program, each) &&
                 (steps ? ends_at(program, each.ref(), steps)
                        : divides_by_end_of_loop(program, scheduler, each.ref()));
        }))
      continue;
    report
        .at(scheduler.ref(), Confidence::likely,
            "the schedule is made for the steps of the loop and is then prepared: its step() "
            "advances once for every process, so it ends too early")
        .help = "Give it num_processes times as many steps, or do not prepare the scheduler.";
  }
}

struct NamedScheduler {
  CallRef made;
  std::string_view name;
};

// Schedulers of PyTorch and of libraries; and optimizer, scheduler = build(model, total) of a file
// that is not at hand, by the name that the result is given.
std::vector<NamedScheduler> named_schedulers(const Program& program) {
  std::vector<NamedScheduler> out;
  for (const CallRef& scheduler : program.calls(Api::scheduler))
    if (const std::string_view name = program.assigned_name(scheduler.ref()); !name.empty())
      out.push_back({scheduler, name});
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Def& def : module->defs()) {
      if (def.kind != diagnose::DefKind::assign || def.value == diagnose::kNoNode) continue;
      const CallRef made = program.as_call({module, def.value});
      if (!made || made.call->api != Api::none || diagnose::is_prepare(made.call->name) ||
          !says_any(module->text(def.target), {"sched"}) ||
          (!made.positional(0) && !made.keyword("optimizer")) || program.callee(made) ||
          program.class_of_call(made))
        continue;
      out.push_back({made, module->text(def.target)});
    }
  return out;
}

// The scheduler is made for as many steps as a loader has batches that prepare() is passed above.
bool counts_prepared_batches(const Program& program, const CallRef& prepare,
                             const CallRef& scheduler, std::string_view loader) {
  const CallRef made = diagnose::made_at(program, scheduler);
  if (loader.empty() || prepare.call->node > made.call->node) return false;
  const std::string length = "len(" + std::string(loader) + ")";
  return (facts::contains(scheduler.module->text(scheduler.call->node), length) ||
          counts_between(program, prepare, made, length)) &&
         !reckons_with_processes(program, scheduler);
}

// The loader of the length was given to prepare() further up in that function.
bool is_of_prepared_loader(const Program& program, Ref length) {
  const auto prepares = program.calls_named("prepare");
  return std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& prepare) {
    if (prepare.module != length.module || prepare.call->node > length.node ||
        program.enclosing_function(prepare.ref()) != program.enclosing_function(length) ||
        facts::exclusive(prepare.ref(), length))
      return false;
    const auto given = given_to(program, prepare);
    return std::any_of(given.begin(), given.end(), [&](Ref loader) {
      return length.text() == "len(" + std::string(loader.text()) + ")";
    });
  });
}

// self.steps = len(self.loader) * epochs below prepare(), in another method than the one that makes
// the schedule: of its class, or of one that derives from it and counts nothing else.
bool counts_prepared_batches_elsewhere(const Program& program, const CallRef& scheduler) {
  const auto owner = program.enclosing_class(scheduler.ref());
  if (!owner || reckons_with_processes(program, scheduler)) return false;
  const auto here = program.enclosing_function(scheduler.ref());
  const auto lengths = lengths_behind(program, scheduler);
  auto classes = program.derived_of(owner);
  classes.push_back(owner);
  return std::any_of(classes.begin(), classes.end(), [&](const diagnose::ClassRef& cls) {
    std::vector<Ref> own = lengths;
    std::erase_if(own, [&](Ref each) {
      return !each.text().starts_with("len(") || program.enclosing_class(each) != cls;
    });
    return !own.empty() && std::all_of(own.begin(), own.end(), [&](Ref each) {
      return program.enclosing_function(each) != here && is_of_prepared_loader(program, each);
    });
  });
}

// scheduler is an argument of something that may prepare it, or step it otherwise, out of sight.
bool is_handed_on(const CallRef& scheduler, std::string_view name) {
  const diagnose::Module& module = *scheduler.module;
  for (const diagnose::Call& call : module.calls()) {
    if (call.name == "register_for_checkpointing" || call.name == "print") continue;
    for (const diagnose::Argument& argument : module.arguments(call.node))
      if (module.text(argument.value) == name) return true;
  }
  return false;
}

bool may_prepare_out_of_sight(const Program& program) {
  const auto prepares = program.calls_named("prepare");
  return program.mentions("prepare_scheduler") ||
         std::any_of(prepares.begin(), prepares.end(),
                     [](const CallRef& prepare) { return prepare.has_splat(); });
}

// for _ in range(accelerator.num_processes): scheduler.step(), as a prepared one does by itself.
bool steps_for_each_process(const Program& program, const CallRef& step) {
  const auto loops = program.loops_around(step.ref());
  return std::any_of(loops.begin(), loops.end(), [](Ref loop) {
    const Ref over = loop.child(diagnose::Field::right);
    return over && facts::contains(over.text(), "num_processes");
  });
}

// All launch lines at hand start a single process.
bool is_launched_for_one(const Program& program) {
  const auto& launches = program.launches();
  return !launches.empty() &&
         std::all_of(launches.begin(), launches.end(), [](const diagnose::LaunchLine& launch) {
           return launch.processes_per_node().value_or(0) == 1 && !facts::starts_several(launch);
         });
}

// The schedule counts the batches of the loader as it was made; each process takes its part of them
// and steps a scheduler of its own, which nothing prepares.
void check_unprepared_schedulers(const Program& program, Report& report) {
  if (may_prepare_out_of_sight(program) || is_launched_for_one(program)) return;
  for (const CallRef& scheduler : program.calls(Api::scheduler)) {
    const std::string_view name = program.assigned_name(scheduler.ref());
    if (name.empty() || never_changes(scheduler) || is_handed_on(scheduler, name) ||
        reckons_with_processes(program, scheduler))
      continue;
    const CallRef step = step_of(program, scheduler, name, [&](const CallRef& each) {
      return !is_step_of_epoch(program, each) && !program.loops_around(each.ref()).empty() &&
             is_unconditional(program, each.ref()) && !steps_for_each_process(program, each);
    });
    if (!step) continue;
    for (const CallRef& prepare : program.calls_named("prepare")) {
      const auto given = given_to(program, prepare);
      const auto is_counted = [&](Ref loader) {
        return counts_above(program, prepare, scheduler, "len(" + std::string(loader.text()) + ")");
      };
      if (prepare.module != scheduler.module ||
          program.enclosing_function(prepare.ref()) !=
              program.enclosing_function(scheduler.ref()) ||
          facts::exclusive(prepare.ref(), scheduler.ref()) ||
          std::none_of(given.begin(), given.end(), is_counted))
        continue;
      Finding& finding =
          report.at(scheduler.ref(), Confidence::likely,
                    "the schedule counts the batches of all processes and is not prepared: each "
                    "process takes its part of the steps, and the schedule never ends");
      finding.severity = Severity::warning;
      finding.help = "Pass the scheduler to prepare(), or count the batches below it.";
      break;
    }
  }
}

}  // namespace

void check_accelerate_scheduler_steps(const Program& program, Report& report) {
  if (!program.uses(Api::accelerator) || is_told_to_step_once(program)) return;
  check_schedulers_of_epochs(program, report);
  check_schedulers_of_steps(program, report);
  check_unprepared_schedulers(program, report);
  const auto prepares = program.calls_named("prepare");
  for (const auto& [scheduler, name] : named_schedulers(program)) {
    bool after = false;
    bool prepared = false;
    const CallRef made = diagnose::made_at(program, scheduler);
    for (const CallRef& each : prepares) {
      const CallRef prepare = diagnose::made_at(program, each);
      if (prepare.module != made.module ||
          program.enclosing_function(prepare.ref()) != program.enclosing_function(made.ref()) ||
          facts::exclusive(prepare.ref(), made.ref()))
        continue;
      for (const Ref argument : given_to(program, each)) {
        prepared = prepared || (argument.text() == name && prepare.call->node > made.call->node);
        after = after || (diagnose::stands_for_object(argument) &&
                          counts_prepared_batches(program, prepare, scheduler, argument.text()));
      }
      // loader = accelerator.prepare(DataLoader(data))
      after = after || counts_prepared_batches(program, prepare, scheduler,
                                               program.assigned_name(prepare.ref()));
    }
    if (!prepared || !(after || counts_prepared_batches_elsewhere(program, scheduler))) continue;
    report
        .at(scheduler.ref(), Confidence::likely,
            "the schedule counts the batches of one process and is then prepared: its step() "
            "advances once for every process, so it decays too fast")
        .help =
        "Count with the loader as it was before prepare(), or do not prepare the scheduler.";
  }
}

}  // namespace bench::pitfalls
