#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/horovod_models.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// net in broadcast_parameters(net.state_dict()) or (net.named_parameters()); empty for all else.
Ref broadcast_model(const Program& program, const CallRef& broadcast) {
  const CallRef given = program.made_by(broadcast.argument(0, "params"));
  const bool is_known =
      given && (given.call->name == "state_dict" || given.call->name == "named_parameters");
  return is_known ? given.receiver() : Ref{};
}

// gan for gan.generator: one holds the other.
bool is_part_of(Ref part, Ref whole) {
  return part.text().starts_with(std::string(whole.text()) + ".");
}

// A common seed, or a file that every rank reads, makes the weights equal without a broadcast.
bool may_start_equal(const Program& program, Ref model) {
  if (program.mentions("seed") || program.mentions("pretrained")) return true;
  const auto loads = program.calls_named("load_state_dict");
  return std::any_of(loads.begin(), loads.end(), [&](const CallRef& load) {
    return load.receiver() && is_unconditional(program, load.ref()) &&
           (same_model(program, load.receiver(), model) || is_part_of(model, load.receiver()));
  });
}

// Two models are trained, and only one of them is broadcast by its name.
void check_models_left_out(const Program& program, Report& report) {
  std::vector<Ref> sent;
  const auto broadcasts = program.calls(Api::hvd_broadcast_parameters);
  for (const CallRef& broadcast : broadcasts) {
    const Ref model = broadcast_model(program, broadcast);
    if (!model) return;  // a list of parameters may hold anything
    sent.push_back(model);
  }
  if (sent.empty() || program.calls_named("broadcast_parameters").size() != sent.size() ||
      program.mentions("broadcast_object"))
    return;
  std::vector<Ref> left_out;
  for (const CallRef& made : program.calls(Api::hvd_optimizer))
    for (const Ref model : models_of_horovod_optimizer(program, made)) {
      const bool in_reach = std::all_of(sent.begin(), sent.end(), [&](Ref each) {
        return each.module == model.module &&
               program.enclosing_function(each) == program.enclosing_function(model);
      });
      const bool is_sent = std::any_of(sent.begin(), sent.end(), [&](Ref each) {
        return same_model(program, each, model) || is_part_of(model, each) ||
               is_part_of(each, model);
      });
      if (in_reach && !is_sent && !may_start_equal(program, model) &&
          std::none_of(left_out.begin(), left_out.end(),
                       [&](Ref each) { return each.text() == model.text(); }))
        left_out.push_back(model);
    }
  for (const Ref model : left_out)
    report
        .at(broadcasts.back().ref(), Confidence::likely,
            "'" + std::string(model.text()) +
                "' is trained too, but its parameters are never broadcast: ranks start from "
                "different weights and stay different")
        .help =
        "hvd.broadcast_parameters(" + std::string(model.text()) + ".state_dict(), root_rank=0).";
}

// if hvd.rank() == 0: model.load_state_dict(...) below the broadcast, which comes too early for it.
void check_loads_after_broadcast(const Program& program, Report& report) {
  const auto broadcasts = program.calls(Api::hvd_broadcast_parameters);
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    if (!load.receiver() || program.guarded_by_rank(load.ref()) != diagnose::RankTest::main_only)
      continue;
    const auto sends_it = [&](const CallRef& broadcast) {
      const Ref model = broadcast_model(program, broadcast);
      return model && (same_model(program, model, load.receiver()) ||
                       is_part_of(model, load.receiver()) || is_part_of(load.receiver(), model));
    };
    const bool any = std::any_of(broadcasts.begin(), broadcasts.end(), sends_it);
    const bool too_late =
        std::all_of(broadcasts.begin(), broadcasts.end(), [&](const CallRef& broadcast) {
          return only_runs_before(program, broadcast.ref(), load.ref());
        });
    if (!any || !too_late || !facts::is_reachable(program, load.ref())) continue;
    report
        .at(load.ref(), Confidence::likely,
            "one rank alone loads weights after the parameters were broadcast: the others train "
            "on from different ones, and the models stay different")
        .help = "Load above hvd.broadcast_parameters(), or on every rank.";
  }
}

}  // namespace

void check_horovod_missing_broadcast(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_optimizer) || program.uses(Api::hvd_elastic)) return;
  const CallRef optimizer = program.calls(Api::hvd_optimizer).front();
  if (!program.uses(Api::hvd_broadcast_parameters) && !program.mentions("broadcast_parameters") &&
      !program.mentions("broadcast_object")) {
    report
        .at(optimizer.ref(), Confidence::certain,
            "parameters are never broadcast: Horovod, unlike DDP, does not do it, so ranks start "
            "from different weights and stay different")
        .help = "hvd.broadcast_parameters(model.state_dict(), root_rank=0).";
    return;
  }
  check_models_left_out(program, report);
  check_loads_after_broadcast(program, report);
  if (program.uses(Api::hvd_broadcast_optimizer_state) ||
      program.mentions("broadcast_optimizer_state"))
    return;
  // Where every rank reads the same file there is nothing to broadcast.
  const auto loads = program.calls_named("load_state_dict");
  if (std::none_of(loads.begin(), loads.end(), [&](const CallRef& load) {
        return program.guarded_by_rank(load.ref()) == diagnose::RankTest::main_only;
      }))
    return;
  Finding& finding =
      report.at(optimizer.ref(), Confidence::likely,
                "a checkpoint is loaded, but the optimizer's state is never broadcast from rank 0");
  finding.severity = Severity::warning;
  finding.help = "hvd.broadcast_optimizer_state(optimizer, root_rank=0).";
}

}  // namespace bench::pitfalls
