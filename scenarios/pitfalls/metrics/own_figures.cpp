#include "scenarios/pitfalls/metrics/own_figures.hpp"

#include "scenarios/pitfalls/data/loader_trails.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

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

// total += loss.item() over the batches that this rank trains on, and a name in the condition that
// holds the total, or what it is divided to.
std::string sum_of_training_in(const Program& program, Ref condition,
                               const std::vector<Reduction>& reductions) {
  if (condition.kind() != Kind::comparison || !reductions.empty()) return {};
  for (const diagnose::TrainingLoop& loop : program.training_loops()) {
    const MetricSum sum =
        loop.batches.kind() == Kind::for_statement ? first_sum(program, loop.batches) : MetricSum{};
    if (!sum || program.enclosing_function(loop.batches) != program.enclosing_function(condition))
      continue;
    const auto& tree = condition.module->tree();
    for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
      const Ref name = condition.with(id);
      if (name.kind() != Kind::identifier) continue;
      const std::string_view text = name.text();
      if (text == sum.name || facts::contains(text_behind(program, name), sum.name + " / "))
        return std::string(text);
    }
  }
  return {};
}

// Calls of torch.distributed and what DeepSpeed's engine writes with all ranks.
std::vector<CallRef> collectives_under_conditions(const Program& program) {
  std::vector<CallRef> out;
  if (program.uses(Api::distributed_sampler))
    for (const Api api : {Api::barrier, Api::all_reduce, Api::all_gather, Api::broadcast})
      out.insert(out.end(), program.calls(api).begin(), program.calls(api).end());
  for (const CallRef& save : program.calls_named("save_checkpoint"))
    if (program.uses(Api::deepspeed) && is_engine(program, save.receiver())) out.push_back(save);
  return out;
}

}  // namespace

std::vector<OwnDecision> collectives_on_own_figures(const Program& program) {
  std::vector<OwnDecision> out;
  const auto collectives = collectives_under_conditions(program);
  if (collectives.empty() || program.framework_distributes() || program.mentions("torchmetrics"))
    return out;
  const std::vector<Reduction> reductions = reductions_of(program);
  for (const CallRef& call : collectives) {
    if (program.guarded_by_rank(call.ref()) != RankTest::none) continue;
    for (const Guard& guard : program.guards(call.ref())) {
      std::string figure = own_figure_in(program, guard.condition, reductions);
      if (figure.empty() && call.call->api == Api::none)
        figure = sum_of_training_in(program, guard.condition, reductions);
      if (figure.empty()) continue;
      out.push_back({call, std::move(figure)});
      break;
    }
  }
  return out;
}

}  // namespace bench::pitfalls
