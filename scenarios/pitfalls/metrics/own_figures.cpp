#include "scenarios/pitfalls/metrics/own_figures.hpp"

#include "scenarios/pitfalls/data/loader_trails.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/own_trails.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/unanswered.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::RankTest;

namespace {

bool reads_share(const Program& program, Ref loop) {
  const Ref over = goes_over(program, loop);
  const auto loaders = loaders_of(program, over);
  return !loaders.empty() &&
         std::all_of(loaders.begin(), loaders.end(), [&](const CallRef& loader) {
           const CallRef sampler = sampler_of(program, loader);
           return sampler && is_evaluation_loader(program, loader) &&
                  !is_left_out_on_every_trail(program, over, loader, sampler);
         });
}

// for x, y in val_loader: total += loss.item(), over a loader with a DistributedSampler.
bool evaluates_own_part(const Program& program, FunctionRef function) {
  const Module& module = *function.module;
  return std::any_of(module.loops().begin(), module.loops().end(), [&](NodeId node) {
    const Ref loop{&module, node};
    return program.enclosing_function(loop) == function && goes_over(program, loop) &&
           first_sum(program, loop) && reads_share(program, loop);
  });
}

// The name in the condition that an evaluation of this rank's part gave its value, and nothing
// else.
std::string own_figure_in(const Program& program, Ref condition,
                          const std::vector<Reduction>& reductions) {
  if (condition.kind() != Kind::comparison) return {};
  const auto& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
    const Ref name = condition.with(id);
    if (name.kind() != Kind::identifier || tree[id].field == Field::attribute) continue;
    const auto& sources = program.sources(name);
    if (sources.empty()) continue;
    const FunctionRef evaluation = program.enclosing_function(sources.front().ref);
    if (!evaluation || evaluation == program.enclosing_function(condition) ||
        !std::all_of(sources.begin(), sources.end(),
                     [&](const diagnose::Source& source) {
                       return program.enclosing_function(source.ref) == evaluation;
                     }) ||
        !evaluates_own_part(program, evaluation))
      continue;
    if (std::none_of(reductions.begin(), reductions.end(), [&](const Reduction& reduction) {
          return serves(program, reduction, evaluation);
        }))
      return std::string(name.text());
  }
  return {};
}

// The variables on either side of the comparison. len(losses) counts rounds, as all ranks do alike.
std::vector<VariableNames> figures_in(Ref comparison) {
  std::vector<VariableNames> out;
  const auto& tree = comparison.module->tree();
  for (std::size_t i = 0; i < tree.child_count(comparison.node); ++i) {
    const Ref side = comparison.with(tree.child_at(comparison.node, i));
    if (!side.text().starts_with("len(")) out.push_back(variables_in(side));
  }
  return out;
}

// total += loss.item() over the batches that this rank trains on, and a name in the condition that
// holds the total, or what the rank makes of it by itself: total / len(loader), np.mean(losses).
std::string sum_of_training_in(const Program& program, Ref condition,
                               const std::vector<Reduction>& reductions) {
  if (condition.kind() != Kind::comparison || !reductions.empty()) return {};
  const auto assigned = assignments_in(body_around(program, condition));
  for (const diagnose::TrainingLoop& loop : program.training_loops()) {
    if (loop.batches.kind() != Kind::for_statement ||
        program.enclosing_function(loop.batches) != program.enclosing_function(condition))
      continue;
    const std::vector<MetricSum> added = sums_of_metrics(program, loop.batches);
    VariableNames sums;
    for (const MetricSum& sum : added) sums.insert(sum.name);
    for (const VariableNames& names : figures_in(condition))
      for (const std::string& name : names)
        if (meet(behind({name}, assigned), sums) &&
            !may_ask_others(program, loop.batches, added, name, condition))
          return name;
  }
  return {};
}

// better for `better = loss < best`: the comparison.
Ref comparison_behind(const Program& program, Ref condition) {
  if (condition.kind() != Kind::identifier) return condition;
  const auto& sources = program.sources(condition);
  const bool is_one =
      sources.size() == 1 && sources.front().how == diagnose::Source::How::value &&
      program.enclosing_function(sources.front().ref) == program.enclosing_function(condition);
  return is_one ? sources.front().ref : condition;
}

// A call that brings every rank to the collective, as it is or by way of helpers.
struct Entry {
  CallRef call;
  std::string_view collective;
};

// Whoever enters the function comes to the call, in a run of several processes: under
// is_initialized(), or in each arm of a test of the rank.
bool is_come_to_by_all(const Program& program, const CallRef& call) {
  const auto guards = program.guards(call.ref());
  return std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return program.is_distributed_flag(guard.condition) ||
           (program.rank_test(guard.condition) != RankTest::none && is_matched(program, call));
  });
}

void add_entries(const Program& program, const CallRef& call, std::string_view collective,
                 int depth, std::vector<Entry>& out) {
  constexpr int kHelpers = 3;
  if (std::any_of(out.begin(), out.end(),
                  [&](const Entry& each) { return each.call.call == call.call; }))
    return;
  out.push_back({call, collective});
  const FunctionRef helper = program.enclosing_function(call.ref());
  if (!helper || depth == kHelpers || !is_come_to_by_all(program, call)) return;
  for (const CallRef& site : program.call_sites(helper))
    if (!site.receiver() || site.receiver().text() == "self" ||
        helper.function->owner_class == diagnose::kNoNode)
      add_entries(program, site, collective, depth + 1, out);
}

// Calls of torch.distributed and what DeepSpeed's engine writes with all ranks.
std::vector<Entry> collectives_under_conditions(const Program& program) {
  std::vector<Entry> out;
  if (program.uses(Api::distributed_sampler))
    for (const Api api : {Api::barrier, Api::all_reduce, Api::all_gather, Api::broadcast})
      for (const CallRef& call : program.calls(api))
        add_entries(program, call, call.call->name, 0, out);
  for (const CallRef& save : program.calls_named("save_checkpoint"))
    if (program.uses(Api::deepspeed) && is_engine(program, save.receiver()))
      out.push_back({save, save.call->name});
  return out;
}

}  // namespace

std::vector<OwnDecision> collectives_on_own_figures(const Program& program) {
  std::vector<OwnDecision> out;
  const auto entries = collectives_under_conditions(program);
  if (entries.empty() || program.framework_distributes() || program.mentions("torchmetrics"))
    return out;
  const std::vector<Reduction> reductions = reductions_of(program);
  for (const auto& [call, collective] : entries) {
    if (program.guarded_by_rank(call.ref()) != RankTest::none) continue;
    for (const Guard& guard : program.guards(call.ref())) {
      const Ref condition = comparison_behind(program, guard.condition);
      std::string figure = own_figure_in(program, condition, reductions);
      if (figure.empty()) figure = sum_of_training_in(program, condition, reductions);
      if (figure.empty()) continue;
      out.push_back({call, collective, std::move(figure)});
      break;
    }
  }
  return out;
}

}  // namespace bench::pitfalls
