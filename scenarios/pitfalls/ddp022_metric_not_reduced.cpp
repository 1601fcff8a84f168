#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/left_out_sampler.hpp"
#include "scenarios/pitfalls/data/loader_trails.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/data/unseen_shards.hpp"
#include "scenarios/pitfalls/files/rank_files.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/metrics/chosen_rank.hpp"
#include "scenarios/pitfalls/metrics/evaluation_loops.hpp"
#include "scenarios/pitfalls/metrics/figure_made.hpp"
#include "scenarios/pitfalls/metrics/forgotten_meters.hpp"
#include "scenarios/pitfalls/metrics/forgotten_number.hpp"
#include "scenarios/pitfalls/metrics/idle_copies.hpp"
#include "scenarios/pitfalls/metrics/last_batch.hpp"
#include "scenarios/pitfalls/metrics/lightning_logs.hpp"
#include "scenarios/pitfalls/metrics/out_of_sight.hpp"
#include "scenarios/pitfalls/metrics/own_copy.hpp"
#include "scenarios/pitfalls/metrics/phase_loops.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/metrics/summed_mean.hpp"
#include "scenarios/pitfalls/metrics/training_reductions.hpp"
#include "scenarios/pitfalls/metrics/unsummed_mean.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/steps/plateau_step.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

bool is_reduced(const Program& program, Ref loop, const std::vector<Reduction>& reductions) {
  // load_metric(..., num_process=n, process_id=i) gathers by itself, through files.
  if (program.mentions("process_id")) return true;
  const FunctionRef evaluation = program.enclosing_function(loop);
  return std::any_of(reductions.begin(), reductions.end(), [&](const Reduction& reduction) {
    return serves(program, reduction, evaluation) && !is_above(program, reduction, loop) &&
           !is_of_training(program, reduction, loop) && !is_over_before(program, reduction, loop);
  });
}

// A helper makes it with and without a sampler, and not for want of ranks.
bool may_lack_sampler(const Program& program, const CallRef& loader) {
  const auto& samplers = program.sources(loader.keyword("sampler"));
  return std::any_of(samplers.begin(), samplers.end(), [&](const diagnose::Source& source) {
    return source.ref.kind() == Kind::none_literal &&
           !facts::only_without_distribution(program, source.ref);
  });
}

// One rank evaluates, over such a loader: it may well see all the data.
bool one_rank_may_see_all(const Program& program, Ref loop, const CallRef& loader) {
  return program.guarded_by_rank(loop) == diagnose::RankTest::main_only &&
         may_lack_sampler(program, loader);
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

void tell_forgotten(const ForgottenNumber& found, Report& report) {
  as_in_trial(report.at(found.use, Confidence::likely,
                        "'" + found.name + "' is that of one rank's part of the data: '" +
                            found.reduced + "' beside it is reduced and it is not"),
              "best-checkpoint")
      .help = "Reduce '" + found.name + "' too.";
}

// dist.all_reduce(correct), and loss / n is returned beside it.
bool tells_forgotten_number(const Program& program, Ref loop,
                            const std::vector<Reduction>& reductions, Report& report) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || program.mentions("torchmetrics")) return false;
  for (const Reduction& reduction : reductions) {
    const FunctionRef there = program.enclosing_function(reduction.call);
    const bool inside = there == function || enters(program, function, there);
    if (inside ? !reduction.value : serves(program, reduction, function)) return false;
  }
  const ForgottenNumber found =
      forgotten_number(program, loop, reduced_in(program, function, reductions));
  if (!found) return false;
  tell_forgotten(found, report);
  return true;
}

// val_loss, accuracy = evaluate(...), and the caller reduces val_loss only.
bool tells_forgotten_result(const Program& program, Ref loop,
                            const std::vector<Reduction>& reductions, Report& report) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || program.mentions("torchmetrics")) return false;
  for (const Reduction& reduction : reductions) {
    const FunctionRef there = program.enclosing_function(reduction.call);
    if (there == function || enters(program, function, there)) return false;
  }
  for (const CallRef& evaluation : program.call_sites(function)) {
    const FunctionRef caller = program.enclosing_function(evaluation.ref());
    if (!caller) continue;
    const ForgottenNumber found =
        forgotten_result(program, loop, evaluation, reduced_in(program, caller, reductions));
    if (!found) continue;
    tell_forgotten(found, report);
    return true;
  }
  return false;
}

void tell_one_rank(Ref evaluation, Report& report) {
  as_in_trial(
      report.at(
          evaluation, Confidence::likely,
          "one rank alone evaluates, and the DistributedSampler of its loader leaves it one rank's "
          "part of the data"),
      "best-checkpoint")
      .help =
      "Give the evaluation of one rank a loader without a DistributedSampler, or evaluate on every "
      "rank and all-reduce the sum and the count.";
}

void tell_plateau(Ref step, const std::string& figure, Report& report) {
  as_in_trial(
      report.at(
          step, Confidence::likely,
          "each rank steps its ReduceLROnPlateau with " + figure +
              " of its own batches: the learning rates drift apart, and the weights with them"),
      "plateau")
      .help = "All-reduce the mean loss before scheduler.step.";
}

// What a function out of sight makes of all predictions may be gathered there.
void tell_nothing_reduced(const Program& program, Ref loop, const MetricSum& sum, Report& report) {
  const FunctionRef evaluation = program.enclosing_function(sum.at);
  for (const CallRef& step : steps_on_result_of(program, evaluation))
    tell_plateau(step.ref(), "what " + std::string(evaluation.function->name) + "() makes", report);

  Finding& finding =
      as_in_trial(report.at(figure_made_at(program, loop, sum), Confidence::likely,
                            "each rank evaluates its own shard and nothing is reduced: '" +
                                sum.name + "' is that of one rank's part of the data"),
                  "best-checkpoint");
  finding.help = "All-reduce the sum and the count before dividing.";
  if (is_handed_out_of_sight(program, loop, sum))
    tell_as_note(finding, "a function that is not here may gather it");
}

// accelerator.prepare(...), also of one that another file makes: self.accelerator = accelerator;
// and Hugging Face's Trainer, which has an Accelerator of its own.
bool prepares_by_accelerate(const Program& program) {
  return program.uses(Api::accelerator) || (!program.has_ddp() && has_trainer_ranks(program)) ||
         (!program.has_ddp() && has_call_of_accelerator(program, "prepare"));
}

// A group of ranks that share out their data, whoever makes the wrapper.
bool shards_in_a_group(const Program& program) {
  return (program.uses(Api::init_process_group) || program.uses(Api::deepspeed)) &&
         program.uses(Api::distributed_sampler);
}

// print(args.process_index, accuracy), f"part{args.process_index}": the figures are told as those
// of one process. A test of the rank is no such thing.
bool tells_of_process(const Program& program, Ref loop) {
  const auto function = program.enclosing_function(loop);
  if (!function) return false;
  const auto& tree = loop.module->tree();
  const NodeId body = function.function->body;
  for (NodeId id = body; id < tree[body].last; ++id)
    if (tree[id].kind == Kind::attribute && tree.text(id).ends_with("process_index") &&
        tree[tree[id].parent].kind != Kind::comparison &&
        tree[tree[id].parent].kind != Kind::not_expression)
      return true;
  return false;
}

// An evaluation over a loader that Accelerate has prepared, or that Hugging Face's Trainer makes
// for evaluations.
bool goes_over_prepared_part(const Program& program, Ref loop) {
  const Ref iterable = goes_over(program, loop);
  if (facts::is_loader_of_trainer(program, iterable))
    return !trains_in_loop(program, loop) && !tells_of_process(program, loop) &&
           (passes_without_grad(program, loop) || program.is_evaluation(loop));
  if (is_run_for_evaluation(program, loop, [&](Ref batches) {
        return static_cast<bool>(preparation_of_loader(program, batches));
      }))
    return true;
  return is_loop_of_evaluation(program, loop) &&
         (program.is_evaluation(loop) || passes_without_grad(program, loop)) &&
         preparation_of_loader(program, program.strip_iterable(iterable));
}

// Under Accelerate a prepared loader gives each process its own part.
void check_prepared_evaluation(const Program& program, Ref loop,
                               const std::vector<Reduction>& reductions, Report& report) {
  if (!goes_over_prepared_part(program, loop) || goes_through_files(program, loop) ||
      tells_forgotten_number(program, loop, reductions, report) ||
      program.mentions("torchmetrics") || is_reduced(program, loop, reductions))
    return;
  if (const MetricSum sum = first_sum(program, loop)) {
    as_in_trial(
        report.at(
            figure_made_at(program, loop, sum), Confidence::likely,
            "each process evaluates its own part of the prepared loader and nothing is gathered: "
            "'" +
                sum.name + "' is that of one process's part of the data"),
        "best-checkpoint")
        .help =
        "Gather what is added up: accelerator.gather_for_metrics(...), or "
        "accelerator.reduce(total) before dividing.";
  }
}

// dist.all_reduce(loss_sum); loss_sum / len(loader).
void check_summed_mean(const Program& program, Ref loop, Report& report) {
  const SummedMean found = summed_mean(program, loop);
  if (!found) return;
  report
      .at(found.division, Confidence::likely,
          "'" + found.name +
              "' is summed over the ranks and divided by the number of batches of one: the figure "
              "is too large by the number of ranks")
      .help = "Divide by the world size too, or all-reduce the number of batches.";
}

// running_loss / world_size in a program that reduces nothing.
void check_unsummed_mean(const Program& program, Ref loop, Report& report) {
  const UnsummedMean found = unsummed_mean(program, loop);
  if (!found) return;
  report
      .at(found.division, Confidence::certain,
          "'" + found.name +
              "' is divided by the number of ranks, and nothing sums it up over the ranks before: "
              "the figure is one rank's share, too small by that factor")
      .help = "All-reduce it before dividing, or do not divide.";
}

void check_plateau_steps(const Program& program, const std::vector<Reduction>& reductions,
                         Report& report) {
  for (const PlateauStep& found : steps_on_own_loss(program, reductions))
    tell_plateau(found.step, "'" + found.name + "'", report);
}

// Some call of the function is made by every rank.
bool all_ranks_call(const Program& program, FunctionRef function) {
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return program.guarded_by_rank(site.ref()) == diagnose::RankTest::none;
  });
}

void check_choices_out_of_sight(const Program& program, const std::vector<Reduction>& reductions,
                                Report& report) {
  for (const CallRef& evaluation : evaluations_that_choose(program, reductions)) {
    Finding& finding =
        report.at(evaluation.ref(), Confidence::likely,
                  "each rank chooses its best model by the figure of its own shard: the "
                  "loader has a DistributedSampler, and nothing is reduced");
    as_in_trial(finding, "best-checkpoint");
    finding.help = "All-reduce the figure, and let one rank save.";
    tell_as_note(finding, "a function that is not here may reduce it");
  }
}

// The function goes over the loader, and what its other callers reduce serves them alone: a
// collective of its own would reduce for every one of them. That of a function which all ranks call
// elsewhere would leave the one rank waiting.
bool reduced_for_others(const Program& program, FunctionRef evaluation, const CallRef& loader,
                        const std::vector<Reduction>& reductions) {
  if (program.mentions("torchmetrics")) return false;
  for (const Reduction& reduction : reductions) {
    const FunctionRef there = program.enclosing_function(reduction.call);
    if (there == evaluation || enters(program, evaluation, there)) return false;
  }
  const Module& module = *evaluation.module;
  return std::any_of(module.loops().begin(), module.loops().end(), [&](NodeId node) {
    const Ref loop{&module, node};
    if (!goes_over(program, loop) || program.enclosing_function(loop) != evaluation ||
        program.guarded_by_rank(loop) == diagnose::RankTest::main_only ||
        trains_in_loop(program, loop) || hands_batches_on(loop) || !first_sum(program, loop) ||
        goes_through_files(program, loop) ||
        !(is_reduced(program, loop, reductions) || all_ranks_call(program, evaluation)))
      return false;
    const auto loaders = loaders_of(program, goes_over(program, loop));
    return std::any_of(loaders.begin(), loaders.end(),
                       [&](const CallRef& each) { return each.ref() == loader.ref(); });
  });
}

// validate(), test_epoch().
bool is_named_evaluating(std::string_view name) { return says_any(name, {"val", "eval", "test"}); }

// val_loader, testloader.
bool is_named_for_evaluation(std::string_view name) {
  return is_named_evaluating(name) && !says_any(name, {"train"});
}

// validate(ddp, val_loader) on one rank with a sharded loader, in a file that is not there or in a
// function that all ranks call elsewhere.
void check_handed_loader(const Program& program, const CallRef& call,
                         const std::vector<Reduction>& reductions, Report& report) {
  const FunctionRef evaluation = program.callee(call);
  if (program.guarded_by_rank(call.ref()) != diagnose::RankTest::main_only) return;
  for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
    for (const CallRef& loader : loaders_of(program, argument)) {
      if (argument.kind() != Kind::identifier ||
          !(is_evaluation_loader(program, loader) || is_named_for_evaluation(argument.text())) ||
          !sampler_of(program, loader) || may_lack_sampler(program, loader) ||
          (evaluation && !reduced_for_others(program, evaluation, loader, reductions)))
        continue;
      tell_one_rank(call.ref(), report);
      return;
    }
}

// A loader whose sampler another file makes, or whose data the program deals out itself.
void check_unseen_loader(const Program& program, Ref loop, const MetricSum& sum,
                         const std::vector<Reduction>& reductions, Report& report) {
  const bool on_every_rank = !trains_in_loop(program, loop) &&
                             program.guarded_by_rank(loop) != diagnose::RankTest::main_only;
  const bool sharded =
      (is_evaluation_loop(program, loop) && shows_sampler(program, loop)) ||
      (on_every_rank && is_asked_to_shard(program, loop) &&
       (is_evaluation_loop(program, loop) || is_loop_of_evaluation(program, loop)));
  if ((sharded || (on_every_rank && goes_over_dealt_data(program, loop))) &&
      !is_reduced(program, loop, reductions) && !goes_through_files(program, loop))
    tell_nothing_reduced(program, loop, sum, report);
}

// correct / len(train_set), where correct was counted over one rank's part of it.
bool tells_share(const Program& program, Ref loop, const CallRef& loader,
                 const std::vector<Reduction>& reductions, Report& report) {
  if (program.mentions("torchmetrics")) return false;
  bool tells = false;
  for (const UnsummedMean& found : shares_of_dataset(program, loop, sampler_of(program, loader))) {
    if (is_reduced(program, loop, reductions) && may_reduce(program, loop, found.name, reductions))
      continue;
    tells = true;
    report
        .at(found.division, Confidence::likely,
            "'" + found.name +
                "' is that of one rank's part of the data, and is divided by the size of all of "
                "it: the figure is too small by the number of ranks")
        .help = "All-reduce the sum before dividing, or divide by what this rank has seen.";
  }
  return tells;
}

// The loop goes over something that no DataLoader of the program is known to be.
bool goes_over_unseen_loader(const Program& program, Ref loop) {
  const Ref iterable = program.strip_iterable(goes_over(program, loop));
  if (!iterable) return false;
  const auto& sources = program.sources(iterable);
  return sources.size() > loaders_of(program, iterable).size() || sources.empty();
}

// Whatever the loader is: that one number of an evaluation is reduced shows that ranks have parts
// of the data, and what is forgotten beside it is that of one part.
void check_beside_reduced(const Program& program, Ref loop,
                          const std::vector<Reduction>& reductions, Report& report) {
  if (!goes_over_unseen_loader(program, loop) || trains_in_loop(program, loop) ||
      !(is_evaluation_loop(program, loop) || is_loop_of_evaluation(program, loop) ||
        program.is_evaluation(loop)) ||
      !(program.is_evaluation(loop) || passes_without_grad(program, loop)) ||
      program.guarded_by_rank(loop) == diagnose::RankTest::main_only ||
      goes_through_files(program, loop))
    return;
  check_forgotten_meters(program, loop, reductions, report);
  if (!tells_forgotten_number(program, loop, reductions, report))
    tells_forgotten_result(program, loop, reductions, report);
}

// A loop over a loader with a DistributedSampler.
bool tells_sharded(const Program& program, Ref loop, const CallRef& loader, const MetricSum& sum,
                   const std::vector<Reduction>& reductions, Report& report) {
  if (trains_in_loop(program, loop)) return tells_share(program, loop, loader, reductions, report);
  const bool says_so = is_evaluation_loader(program, loader) ||
                       evaluates_in_one_phase(program, loop, loader) ||
                       is_run_over_shard(program, loop, loader);
  // Of two phases the other one may go over all the data.
  if (!says_so && trains_in_one_phase(program, loop) &&
      tells_share(program, loop, loader, reductions, report))
    return true;
  if (says_so) check_forgotten_meters(program, loop, reductions, report);
  if ((!says_so && !is_evaluation_loop(program, loop) && !stands_in_evaluation(program, loop)) ||
      goes_through_files(program, loop) || one_rank_may_see_all(program, loop, loader) ||
      is_sampled_for_training(program, loader) ||
      is_sampler_of_training(program, loader, sampler_of(program, loader)))
    return false;
  if (says_so && (tells_forgotten_number(program, loop, reductions, report) ||
                  tells_forgotten_result(program, loop, reductions, report)))
    return true;
  if (is_reduced(program, loop, reductions)) return false;
  if (program.guarded_by_rank(loop) == diagnose::RankTest::main_only)
    tell_one_rank(place_of_choice(program, loop, loader), report);
  else
    tell_nothing_reduced(program, loop, sum, report);
  return true;
}

}  // namespace

void check_metric_not_reduced(const Program& program, Report& report) {
  check_lightning_logs(program, report);
  const bool by_hand =
      !program.framework_distributes() && (program.has_ddp() || shards_in_a_group(program));
  const bool is_meter_program = program.mentions("torchmetrics");
  const bool prepared = prepares_by_accelerate(program);
  if (!by_hand && !prepared && !program.uses(Api::hvd_init)) return;
  const std::vector<Reduction> reductions = reductions_of(program);
  if (!prepared) check_plateau_steps(program, reductions, report);
  check_own_copies(program, reductions, report);
  check_idle_copies(program, reductions, report);
  if (by_hand) check_choices_out_of_sight(program, reductions, report);
  for (const Module* module : program.modules()) {
    if (by_hand)
      for (const std::uint32_t index : module->calls_that(is_named_evaluating))
        check_handed_loader(program, {module, &module->calls()[index]}, reductions, report);
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      const Ref over = goes_over(program, loop);
      if (!over || hands_batches_on(loop)) continue;
      if (reductions.empty()) check_unsummed_mean(program, loop, report);
      if (by_hand && !prepared) {
        check_summed_mean(program, loop, report);
        check_beside_reduced(program, loop, reductions, report);
      }
      if (prepared) {
        check_prepared_evaluation(program, loop, reductions, report);
        continue;
      }
      // Metrics of torchmetrics are reduced out of sight, where all ranks have some.
      const bool all_reduce =
          is_meter_program && program.guarded_by_rank(loop) != diagnose::RankTest::main_only;
      MetricSum sum = all_reduce ? sum_by_hand(program, loop) : first_sum(program, loop);
      if (!sum && !is_meter_program && is_evaluation_loop(program, loop))
        sum = figure_of_last_batch(program, loop);
      if (!sum) continue;
      check_unseen_loader(program, loop, sum, reductions, report);
      for (const CallRef& loader : loaders_gone_over(program, over))
        if (const CallRef sampler = sampler_of(program, loader);
            sampler && !is_sampler_left_out(program, loop, sampler) &&
            !is_left_out_on_every_trail(program, over, loader, sampler) &&
            tells_sharded(program, loop, loader, sum, reductions, report))
          break;
    }
  }
}

}  // namespace bench::pitfalls
