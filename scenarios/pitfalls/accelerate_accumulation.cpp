#include "scenarios/pitfalls/accelerate_accumulation.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/prepared.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;

namespace {

// Both are args.accumulation, one of them perhaps by a name of its own.
bool is_same_number(const Program& program, Ref a, Ref b) {
  if (a.text() == b.text()) return true;
  const auto mine = program.sources(a);
  const auto others = program.sources(b);
  return mine.size() == 1 && others.size() == 1 &&
         mine.front().ref.text() == others.front().ref.text() &&
         mine.front().ref.module == others.front().ref.module &&
         mine.front().ref.kind() != Kind::integer;
}

// accelerator.gradient_accumulation_steps.
bool is_number_of_accelerator(Ref value) {
  return value.kind() == Kind::attribute &&
         value.child(Field::attribute).text() == "gradient_accumulation_steps" &&
         facts::contains(value.child(Field::object).text(), "accelerator");
}

// The division by the number in loss / n, also with the loss of n parts that loss / n stands in.
Ref division_in(const Program& program, Ref value, Ref number) {
  if (value.kind() != Kind::binary || value.module->tree()[value.node].op != Op::divide) return {};
  const Ref divisor = value.child(Field::right);
  return divisor && (is_same_number(program, divisor, number) || is_number_of_accelerator(divisor))
             ? value
             : Ref{};
}

// loss / n as the argument, or the last of loss = loss / n and loss /= n above it in its loop.
Ref division_of_loss(const Program& program, const CallRef& backward, Ref number) {
  const Ref loss = backward.positional(0);
  if (const Ref direct = division_in(program, loss, number)) return direct;
  const auto& tree = loss.module->tree();
  Ref found;
  const auto is_above = [&](NodeId node) {
    const Ref at = loss.with(node);
    return node < backward.call->node && at.child(Field::left).text() == loss.text() &&
           program.enclosing_function(at) == program.enclosing_function(loss) &&
           program.innermost_loop(at) == program.innermost_loop(loss);
  };
  for (const NodeId node : loss.module->nodes_of(Kind::assignment))
    if (is_above(node)) found = division_in(program, loss.with(node).child(Field::right), number);
  for (const NodeId node : loss.module->nodes_of(Kind::augmented_assignment)) {
    const Ref divisor = loss.with(node).child(Field::right);
    if (is_above(node) && tree[node].op == Op::divide && divisor &&
        (is_same_number(program, divisor, number) || is_number_of_accelerator(divisor)))
      found = loss.with(node);
  }
  return found;
}

bool is_run_by_another_engine(const Program& program) {
  for (const char* word : {"DeepSpeedPlugin", "deepspeed_plugin", "MegatronLMPlugin"})
    if (program.mentions(word)) return true;
  return false;
}

}  // namespace

void check_divided_twice(const Program& program, Report& report) {
  const Ref number = program.calls(Api::accelerator).front().keyword("gradient_accumulation_steps");
  if (!number || is_run_by_another_engine(program)) return;
  const diagnose::Value steps = program.evaluate(number);
  const bool known = steps.is_integer() && !steps.is_default;
  if (known && steps.integer <= 1) return;
  for (const CallRef& backward : program.calls_named("backward")) {
    if (!backward.positional(0) || !is_of_accelerator(backward)) continue;
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

void check_accumulate_around_loop(const Program& program, Report& report) {
  if (!program.mentions("gradient_accumulation_steps") || is_run_by_another_engine(program)) return;
  for (const CallRef& accumulate : program.calls_named("accumulate")) {
    const auto& tree = accumulate.module->tree();
    const NodeId with = tree.ancestor(accumulate.call->node, Kind::with_statement);
    if (!is_of_accelerator(accumulate) || with == diagnose::kNoNode) continue;
    const auto& loops = program.training_loops();
    const bool around =
        std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
          return loop.batches.module == accumulate.module &&
                 loop.batches.kind() == Kind::for_statement &&
                 tree.contains(with, loop.batches.node) && loop.epochs &&
                 !tree.contains(with, loop.epochs.node);
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

}  // namespace bench::pitfalls
