#include "scenarios/pitfalls/frameworks/accelerate_accumulation.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <span>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::Source;

namespace {

// Both are args.accumulation, one of them perhaps by a name of its own. That a literal is the same
// says nothing: (a + b) / 2 is the mean of two losses.
bool is_same_number(const Program& program, Ref a, Ref b) {
  const auto is_literal = [](Ref at) { return at.kind() == Kind::integer; };
  if (is_literal(a) || is_literal(b)) return false;
  if (a.text() == b.text() && (a.kind() != Kind::identifier || program.same_variable(a, b) ||
                               says_any(a.text(), {"accum"})))
    return true;
  const auto& mine = program.sources(a);
  const auto& others = program.sources(b);
  if (mine.size() != 1 || others.size() != 1) return false;
  const Ref one = mine.front().ref;
  const Ref other = others.front().ref;
  return one == other ||
         (!is_literal(one) && one.module == other.module && one.text() == other.text());
}

// accelerator.gradient_accumulation_steps.
bool is_number_of_accelerator(Ref value) {
  return value.kind() == Kind::attribute &&
         value.child(Field::attribute).text() == "gradient_accumulation_steps" &&
         facts::contains(value.child(Field::object).text(), "accelerator");
}

bool is_number(const Program& program, Ref divisor, Ref number) {
  return divisor && (is_number_of_accelerator(divisor) || is_same_number(program, divisor, number));
}

// loss / n.
bool is_division(const Program& program, Ref value, Ref number) {
  return value.kind() == Kind::binary && value.module->tree()[value.node].op == Op::divide &&
         is_number(program, value.child(Field::right), number);
}

// The last node of the kind above `below` that gives the variable a value; kNoNode where none does.
NodeId last_above(Ref variable, NodeId below, diagnose::ListedKind kind) {
  const std::span<const NodeId> nodes = variable.module->nodes_of(kind);
  const NodeId function = variable.module->function_of(variable.node);
  for (auto at = std::lower_bound(nodes.begin(), nodes.end(), below); at != nodes.begin();) {
    const Ref left = variable.with(*--at).child(Field::left);
    if (!left || variable.module->function_of(*at) != function) continue;
    if (left.text() == variable.text() ||
        (left.kind() != Kind::identifier &&
         variables_in(left).contains(std::string(variable.text()))))
      return *at;
  }
  return diagnose::kNoNode;
}

// Only a test of the number itself stands between them: if n > 1: loss = loss / n.
bool is_under_tests_of(const Program& program, Ref division, const CallRef& backward, Ref number) {
  if (facts::exclusive(division, backward.ref())) return false;
  const auto& tree = division.module->tree();
  for (const diagnose::Guard& guard : program.guards(division)) {
    const NodeId test = guard.condition ? tree[guard.condition.node].parent : diagnose::kNoNode;
    if (test != diagnose::kNoNode && tree.contains(test, backward.call->node)) continue;
    if (!facts::contains(guard.condition.text(), number.text()) &&
        !says_any(guard.condition.text(), {"accum"}))
      return false;
  }
  return true;
}

// loss / n as the argument, or loss = loss / n and loss /= n as the last that gives it a value.
Ref division_of_loss(const Program& program, const CallRef& backward, Ref number) {
  const Ref loss = backward.positional(0);
  if (is_division(program, loss, number)) return loss;
  if (loss.kind() != Kind::identifier) return {};
  const NodeId below = backward.call->node;
  const NodeId set = last_above(loss, below, Kind::assignment);
  const NodeId changed = last_above(loss, below, Kind::augmented_assignment);
  const bool is_changed =
      changed != diagnose::kNoNode && (set == diagnose::kNoNode || changed > set);
  const NodeId last = is_changed ? changed : set;
  if (last == diagnose::kNoNode) return {};
  const Ref at = loss.with(last);
  const Ref value = at.child(Field::right);
  const bool divides = value && (is_changed ? loss.module->tree()[last].op == Op::divide &&
                                                  is_number(program, value, number)
                                            : at.child(Field::left).text() == loss.text() &&
                                                  is_division(program, value, number));
  if (!divides || program.innermost_loop(at) != program.innermost_loop(loss) ||
      !is_under_tests_of(program, at, backward, number))
    return {};
  return is_changed ? at : value;
}

// accelerator.gradient_accumulation_steps = 1, set later than where the Accelerator is made.
bool is_set_elsewhere(const Program& program) {
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::assignment)) {
      const Ref left = Ref{module, node}.child(Field::left);
      if (left && is_number_of_accelerator(left)) return true;
    }
  return false;
}

bool is_run_by_another_engine(const Program& program) {
  for (const char* word : {"DeepSpeedPlugin", "deepspeed_plugin", "MegatronLMPlugin"})
    if (program.mentions(word)) return true;
  return false;
}

}  // namespace

void check_divided_twice(const Program& program, Report& report) {
  const auto made = program.calls(Api::accelerator);
  if (made.size() != 1) return;
  const Ref number = made.front().keyword("gradient_accumulation_steps");
  if (!number || is_run_by_another_engine(program) || is_set_elsewhere(program)) return;
  const diagnose::Value steps = program.evaluate(number);
  const bool known = steps.is_integer() && !steps.is_default;
  if (known && steps.integer <= 1) return;
  for (const CallRef& backward : program.calls_named("backward")) {
    if (!backward.positional(0) || !is_of_accelerator(program, backward)) continue;
    const Ref division = division_of_loss(program, backward, number);
    if (!division) continue;
    Finding& finding =
        report.at(division, known ? Confidence::certain : Confidence::likely,
                  "accelerator.backward() divides the loss by gradient_accumulation_steps: with "
                  "this division the gradients are too small by that factor");
    if (!known) finding.severity = Severity::warning;
    finding.help = "Leave the division to accelerator.backward().";
  }
}

namespace {

// Over a loader that was prepared or is called one; not over the parts of one batch.
bool is_over_loader(const Program& program, const diagnose::TrainingLoop& loop) {
  const Ref iterable = loop.iterable;
  return iterable &&
         (preparation_of_loader(program, iterable) || !loaders_of(program, iterable).empty() ||
          (!program.as_call(iterable) && says_any(iterable.text(), {"loader"})));
}

// A literal 1 accumulates nothing.
bool may_accumulate(const Program& program) {
  const auto made = program.calls(Api::accelerator);
  return std::none_of(made.begin(), made.end(), [&](const CallRef& call) {
    const Ref number = call.keyword("gradient_accumulation_steps");
    if (!number) return false;
    const diagnose::Value steps = program.evaluate(number);
    return steps.is_integer() && !steps.is_default && steps.integer <= 1;
  });
}

}  // namespace

void check_accumulate_around_loop(const Program& program, Report& report) {
  if (!program.mentions("gradient_accumulation_steps") || is_run_by_another_engine(program) ||
      !may_accumulate(program))
    return;
  for (const CallRef& accumulate : program.calls_named("accumulate")) {
    const auto& tree = accumulate.module->tree();
    const NodeId with = tree.ancestor(accumulate.call->node, Kind::with_statement);
    if (!is_of_accelerator(program, accumulate) || with == diagnose::kNoNode) continue;
    const auto& loops = program.training_loops();
    const bool around =
        std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
          return loop.batches.module == accumulate.module &&
                 loop.batches.kind() == Kind::for_statement &&
                 tree.contains(with, loop.batches.node) && loop.epochs &&
                 !tree.contains(with, loop.epochs.node) && is_over_loader(program, loop);
        });
    if (!around) continue;
    Finding& finding = report.at(
        accumulate.ref(), Confidence::likely,
        "accumulate() stands around the loop over batches: it counts one step a round, so with "
        "more than one accumulation step whole rounds of batches make no optimizer step");
    finding.severity = Severity::warning;
    finding.help = "Put it into the loop, around the work of one batch.";
  }
}

namespace {

// if args.gradient_accumulation_steps != 1: raise ValueError(...): there is no accumulation.
bool is_refused(Ref read) {
  const auto& tree = read.module->tree();
  if (tree.ancestor(read.node, Kind::assert_statement) != diagnose::kNoNode) return true;
  const NodeId test = tree.ancestor(read.node, Kind::if_statement);
  if (test == diagnose::kNoNode) return false;
  const Ref branch{read.module, test};
  const Ref condition = branch.child(diagnose::Field::condition);
  return condition && tree.contains(condition.node, read.node) &&
         facts::contains(branch.child(diagnose::Field::consequence).text(), "raise ");
}

// args.gradient_accumulation_steps of the program's own settings is read, for the number of steps,
// the schedule or a message.
bool reads_steps_of_settings(const Program& program) {
  if (!program.mentions(".gradient_accumulation_steps")) return false;
  for (const Module* module : program.modules())
    for (NodeId node = 0; node < module->tree().size(); ++node) {
      const Ref read{module, node};
      if (read.kind() == Kind::attribute && !is_number_of_accelerator(read) &&
          read.child(Field::attribute).text() == "gradient_accumulation_steps" &&
          !is_refused(read) && !program.is_accelerator(read.child(Field::object)))
        return true;
    }
  return false;
}

// accelerate launch --gradient_accumulation_steps 4, or a line of its config, tells the Accelerator
// by the environment.
bool may_be_told_at_launch(const Program& program) {
  const auto& launches = program.launches();
  return program.mentions("ACCELERATE_GRADIENT_ACCUMULATION_STEPS") ||
         std::any_of(launches.begin(), launches.end(), [](const diagnose::LaunchLine& launch) {
           return launch.flags.contains("gradient_accumulation_steps") ||
                  launch.flags.contains("gradient-accumulation-steps") ||
                  launch.flags.contains("config_file");
         });
}

}  // namespace

void check_untold_accumulation(const Program& program, const CallRef& made, Report& report) {
  const auto accumulates = program.calls_named("accumulate");
  if (program.calls(Api::accelerator).size() != 1 || made.has_splat() ||
      made.keyword("gradient_accumulation_steps") || made.keyword("gradient_accumulation_plugin") ||
      made.keyword("deepspeed_plugin") || is_run_by_another_engine(program) ||
      is_set_elsewhere(program) || !reads_steps_of_settings(program) ||
      may_be_told_at_launch(program) ||
      std::none_of(accumulates.begin(), accumulates.end(), [&](const CallRef& accumulate) {
        return is_of_accelerator(program, accumulate) &&
               facts::is_reachable(program, accumulate.ref());
      }))
    return;
  Finding& finding = report.at(
      made.ref(), Confidence::likely,
      "the Accelerator is not told gradient_accumulation_steps: accumulate() counts to 1, "
      "and every batch makes an optimizer step whatever the setting says");
  finding.severity = Severity::warning;
  finding.help =
      "Pass it: Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps).";
}

namespace {

// Steps under a test of its own: if (i + 1) % config.accumulation == 0.
bool steps_by_hand(const Program& program) {
  const auto steps = program.calls_named("step");
  return std::any_of(steps.begin(), steps.end(), [&](const CallRef& step) {
    const auto guards = program.guards(step.ref());
    return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
      return facts::contains(guard.condition.text(), "%");
    });
  });
}

// i % args.accumulation is part of the condition, for the number args.accumulation.
bool counts_to(Ref condition, Ref number) {
  const auto& tree = condition.module->tree();
  for (auto at = condition.node; at < tree[condition.node].last; ++at)
    if (tree[at].kind == Kind::binary && tree[at].op == diagnose::Op::modulo &&
        condition.with(at).child(diagnose::Field::right).text() == number.text())
      return true;
  return false;
}

// if i % args.accumulation == 0: optimizer.step() beside accelerator.backward(loss), which divides
// the loss by the same number wherever it is called.
bool is_divided_and_counted(const Program& program, Ref given) {
  const auto steps = program.calls_named("step");
  const auto counts_to_number = [&](const diagnose::Guard& guard) {
    return counts_to(guard.condition, given);
  };
  return has_call_of_accelerator(program, "backward") &&
         std::any_of(steps.begin(), steps.end(), [&](const CallRef& step) {
           const auto guards = program.guards(step.ref());
           return std::any_of(guards.begin(), guards.end(), counts_to_number);
         });
}

// fire.Fire(main): the parameter is an option of the command line, whatever its default says.
bool is_parameter_of_command(const Program& program, Ref number) {
  const Ref given = diagnose::seen_above(program, number);
  const auto function = program.enclosing_function(given);
  if (!function || given.kind() != Kind::identifier) return false;
  const auto& parameters = function.function->parameters;
  const auto commands = program.calls_named("Fire");
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const auto& each) { return each.name == given.text(); }) &&
         function.module->defs_of(given.text(), false).size() == 1 &&
         std::any_of(commands.begin(), commands.end(), [&](const CallRef& command) {
           const auto& given = program.sources(command.positional(0));
           return std::any_of(given.begin(), given.end(), [&](const Source& source) {
             return source.ref == Ref{function.module, function.function->node};
           });
         });
}

// args.steps, config["steps"] and config.get("steps", 4): a number that is meant to be set, and
// that is more than one where nobody has. Also under a name of its own.
bool is_setting(const Program& program, Ref given) {
  const auto& sources = program.sources(given);
  if (given.kind() == Kind::identifier && sources.size() == 1) given = sources.front().ref;
  if (given.kind() == Kind::attribute || given.kind() == Kind::subscript) return true;
  const CallRef got = program.as_call(given);
  if (!got || got.call->name != "get" || !got.receiver()) return false;
  const diagnose::Value otherwise = program.evaluate(got.positional(1));
  return otherwise.is_integer() && otherwise.integer > 1;
}

}  // namespace

void check_accumulation(const Program& program, const CallRef& made, Report& report) {
  const Ref given = made.keyword("gradient_accumulation_steps");
  // A script that only generates has nothing to accumulate.
  const bool trains =
      !program.training_loops().empty() || has_call_of_accelerator(program, "backward");
  if (!given || !trains || made.keyword("deepspeed_plugin") ||
      program.mentions("DeepSpeedPlugin") || !program.calls_named("accumulate").empty())
    return;
  for (const char* word : {"no_sync", "_do_sync", "set_sync_gradients", ".sync_gradients ="})
    if (program.mentions(word)) return;  // DeepSpeed's engine counts the steps itself
  const diagnose::Value steps = program.evaluate(given);
  const auto names = program.names_behind(given);
  const bool is_command = is_parameter_of_command(program, given) ||
                          std::any_of(names.begin(), names.end(), [&](Ref name) {
                            return is_parameter_of_command(program, name);
                          });
  const bool known = steps.is_integer() && !is_command;
  const bool open = !known && !program.training_loops().empty() &&
                    (is_setting(program, given) || is_command) && !steps_by_hand(program);
  if ((known ? steps.integer <= 1 : !open) || is_divided_and_counted(program, given)) return;
  Finding& finding = report.at(given, known ? Confidence::certain : Confidence::likely,
                               "gradient_accumulation_steps has no effect without `with "
                               "accelerator.accumulate(model):`");
  if (!known) finding.severity = Severity::warning;
  finding.help = "Put the body of the loop under accelerator.accumulate(model).";
}

}  // namespace bench::pitfalls
