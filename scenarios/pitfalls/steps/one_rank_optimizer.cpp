#include "scenarios/pitfalls/steps/one_rank_optimizer.hpp"

#include "diagnose/model/usual_names.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::RankTest;

namespace {

// broadcast_object_list([optimizer.state_dict()]), sync_state(optimizer): it may reach the others.
bool sends_something(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& call : module->calls()) {
      const std::string name = facts::lowered(call.name);
      if (call.api == Api::ddp || call.api == Api::convert_sync_batch_norm) continue;
      // sync_params(model.parameters()): of weights, which say nothing of the optimizer's state.
      if (facts::contains(name, "param") || facts::contains(name, "batch_norm")) continue;
      for (const std::string_view word : {"broadcast", "scatter", "sync_", "share", "send"})
        if (facts::contains(name, word)) return true;
    }
  return false;
}

// In __init__ or what it calls, of a class whose methods train: they are called afterwards.
bool is_made_ready_for_methods(const Program& program, Ref change) {
  const auto cls = program.enclosing_class(change);
  const auto init = cls ? program.method(cls, "__init__") : diagnose::FunctionRef{};
  const auto here = program.enclosing_function(change);
  if (!init || !here) return false;
  const auto reached = program.reached({init.module, init.function->body});
  const auto is_reached = [&](const diagnose::FunctionRef& function) {
    return function == init || std::find(reached.begin(), reached.end(), function) != reached.end();
  };
  const auto backwards = program.calls_named("backward");
  return is_reached(here) &&
         std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
           return program.enclosing_class(backward.ref()) == cls &&
                  !is_reached(program.enclosing_function(backward.ref()));
         });
}

// Steps of a loop below, or of a loop around, use what is changed here.
bool is_used_afterwards(const Program& program, Ref change) {
  if (is_made_ready_for_methods(program, change)) return true;
  const auto& loops = program.training_loops();
  const auto around = program.loops_around(change);
  return std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
    if (program.runs_before(change, loop.batches)) return true;
    const auto rounds = program.loops_around(loop.batches);
    return std::any_of(around.begin(), around.end(), [&](Ref each) {
      return each == loop.batches || std::find(rounds.begin(), rounds.end(), each) != rounds.end();
    });
  });
}

// Under a test of the rank, here or around every call of the helper that it stands in.
bool is_of_main_rank(const Program& program, Ref node) {
  if (program.guarded_by_rank(node) != RankTest::main_only ||
      facts::only_without_distribution(program, node))
    return false;
  if (program.rank_guard(node)) return true;
  const auto helper = program.enclosing_function(node);
  const auto sites = helper ? program.call_sites(helper) : std::vector<CallRef>{};
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return static_cast<bool>(program.rank_guard(site.ref()));
  });
}

// What a function out of sight gives beside other things is known by its name.
bool is_optimizer(const Program& program, Ref object) {
  return program.comes_from(object, Api::optimizer) ||
         (object.kind() == Kind::identifier &&
          (object.text() == "opt" || diagnose::names_optimizer(object.text())));
}

bool is_restored_elsewhere(const Program& program, const CallRef& load) {
  const auto loads = program.calls_named("load_state_dict");
  return std::any_of(loads.begin(), loads.end(), [&](const CallRef& other) {
    return other.call != load.call && other.receiver() &&
           program.guarded_by_rank(other.ref()) != RankTest::main_only &&
           (program.same_variable(other.receiver(), load.receiver()) ||
            is_optimizer(program, other.receiver()));
  });
}

// group["lr"] and optimizer.param_groups[0]["lr"], which are written here.
bool is_learning_rate(const Program& program, Ref target) {
  if (target.kind() != Kind::subscript ||
      target.module->tree().string_value(target.child(Field::subscript).node).value_or("") != "lr")
    return false;
  const Ref group = target.child(Field::value);
  if (facts::contains(group.text(), "param_groups")) return true;
  const auto& sources = program.sources(group);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const auto& source) {
    return source.how == diagnose::Source::How::loop_item &&
           source.ref.text().ends_with(".param_groups");
  });
}

std::vector<Ref> learning_rates_written(const Program& program) {
  std::vector<Ref> out;
  constexpr diagnose::ListedKind kWrites[] = {Kind::assignment, Kind::augmented_assignment};
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::ListedKind kind : kWrites)
      for (const NodeId node : module->nodes_of(kind)) {
        const Ref target = Ref{module, node}.child(Field::left);
        if (target && is_learning_rate(program, target)) out.push_back(target);
      }
  return out;
}

}  // namespace

void check_optimizer_of_one_rank(const Program& program, Report& report) {
  std::vector<Ref> restored;
  for (const CallRef& load : program.calls_named("load_state_dict"))
    if (load.receiver() && is_of_main_rank(program, load.ref()) &&
        is_optimizer(program, load.receiver()) && !is_restored_elsewhere(program, load) &&
        is_used_afterwards(program, load.ref()))
      restored.push_back(load.ref());
  auto written = learning_rates_written(program);
  if (std::any_of(written.begin(), written.end(),
                  [&](Ref target) { return !is_of_main_rank(program, target); }))
    written.clear();
  if ((restored.empty() && written.empty()) || sends_something(program)) return;
  for (const Ref load : restored)
    report
        .at(load, Confidence::likely,
            "one rank alone restores the optimizer's state: DDP sends none of it to the others, "
            "and from equal gradients the ranks make different steps")
        .help = "Load it on every rank, with map_location.";
  for (const Ref target : written)
    if (is_used_afterwards(program, target))
      report
          .at(target, Confidence::likely,
              "one rank alone changes its learning rate: the others keep theirs, and the replicas "
              "drift apart from here")
          .help = "Change it on every rank, from a figure that all ranks have.";
}

}  // namespace bench::pitfalls
