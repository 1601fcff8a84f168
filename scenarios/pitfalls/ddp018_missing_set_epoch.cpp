#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/endless_loaders.hpp"
#include "scenarios/pitfalls/data/fixed_epoch.hpp"
#include "scenarios/pitfalls/data/left_out_sampler.hpp"
#include "scenarios/pitfalls/data/loader_epochs.hpp"
#include "scenarios/pitfalls/data/loader_restarts.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/data/second_loaders.hpp"
#include "scenarios/pitfalls/data/unreached_sampler.hpp"
#include "scenarios/pitfalls/frameworks/engine_runs.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/paired_loss.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// One call leads to the function of the parameter, and nobody else is handed it.
bool has_one_caller(const Program& program, Ref parameter) {
  const auto function = program.enclosing_function(parameter);
  return function && program.call_sites(function).size() == 1 &&
         program.handed_on(function).empty();
}

// The samplers that set_epoch is called on: sampler.set_epoch(e), loader.sampler.set_epoch(e).
// Empty where one of them cannot be told.
std::vector<CallRef> samplers_set(const Program& program, const CallRef& set) {
  std::vector<CallRef> out;
  const Ref object = set.receiver();
  if (!object) return out;
  const bool of_loader =
      object.kind() == Kind::attribute && object.child(Field::attribute).text() == "sampler";
  if (of_loader) {
    // A helper that takes the loader: which calls reach it is not always known, so it may be called
    // for any of them, unless there is only one.
    const Ref loader = object.child(Field::object);
    if (facts::is_parameter(program, loader) && !has_one_caller(program, loader)) return out;
    for (const CallRef& loader : loaders_of(program, object.child(Field::object)))
      if (const CallRef sampler = sampler_of(program, loader)) out.push_back(sampler);
    if (!out.empty()) return out;
  }
  for (const diagnose::Source& source : program.sources(object)) {
    const CallRef made = program.as_call(source.ref);
    if (source.how != diagnose::Source::How::value || !made ||
        made.call->api != Api::distributed_sampler)
      return {};
    out.push_back(made);
  }
  return out;
}

// loader.sampler.epoch = epoch, which is all that set_epoch does.
bool assigns_epoch(const Program& program) {
  for (const auto* module : program.modules())
    for (const std::uint32_t index : module->defs_of("epoch", true)) {
      const Ref target{module, module->defs()[index].target};
      if (target.child(Field::object).text().ends_with("sampler")) return true;
    }
  return false;
}

// sampler.set_epoch(start) above the loop over epochs, and outside of any other: told once.
bool is_told_once(const Program& program, const CallRef& set, const diagnose::TrainingLoop& loop) {
  return only_runs_before(program, set.ref(), loop.epochs) &&
         program.loops_around(set.ref()).empty() &&
         !facts::is_parameter(program, set.positional(0));
}

// set_epoch with an argument that changes, on this sampler or on one that cannot be told;
// set_epoch(0) keeps the order it would have anyway.
bool sets_epoch(const Program& program, const CallRef& sampler,
                const diagnose::TrainingLoop* loop = nullptr) {
  if (assigns_epoch(program)) return true;
  const auto sets = program.calls_named("set_epoch");
  return std::any_of(sets.begin(), sets.end(), [&](const CallRef& set) {
    if (never_changes(program, set.positional(0)) ||
        (loop != nullptr && is_told_once(program, set, *loop)))
      return false;
    const auto known = samplers_set(program, set);
    return known.empty() || std::any_of(known.begin(), known.end(), [&](const CallRef& each) {
             return each.ref() == sampler.ref();
           });
  });
}

// set_epoch(0), which is as good as none.
CallRef constant_set(const Program& program) {
  for (const CallRef& set : program.calls_named("set_epoch"))
    if (never_changes(program, set.positional(0))) return set;
  return {};
}

// The only call is one above the loop.
CallRef set_once(const Program& program, const diagnose::TrainingLoop& loop) {
  const auto sets = program.calls_named("set_epoch");
  return sets.size() == 1 && is_told_once(program, sets.front(), loop) ? sets.front() : CallRef{};
}

// A sampler class of the program whose own order does not come from the epoch, or that counts the
// epochs itself.
bool orders_itself(const Program& program, const CallRef& sampler) {
  const auto cls = program.class_of_call(sampler);
  const auto draws = cls ? program.method(cls, "__iter__") : diagnose::FunctionRef{};
  if (!draws) return false;
  const std::string_view text = draws.module->text(draws.function->node);
  return cls.module->text(cls.cls->node).find("self.epoch") == std::string_view::npos ||
         facts::contains(text, "self.epoch +=") || facts::contains(text, "self.epoch =") ||
         facts::contains(text, "set_epoch(");
}

// Steps counted inside the epoch, with next(it): an epoch begins where iter(loader) does.
bool begins_again(const Program& program, const diagnose::TrainingLoop& loop) {
  // The rounds of a generator that the loop draws from.
  if (program.enclosing_function(loop.epochs) != loop.function &&
      loop.epochs.kind() == Kind::while_statement && facts::contains(loop.epochs.text(), "yield"))
    return true;
  if (loop.batches.kind() == Kind::for_statement &&
      program.strip_iterable(loop.batches.child(Field::right)) == loop.iterable)
    return true;
  for (const CallRef& starts : program.calls_named("iter"))
    if (starts.module == loop.epochs.module && runs_in(program, loop.epochs, starts.ref()) &&
        program.strip_iterable(starts.positional(0)).text() == loop.iterable.text())
      return true;
  return false;
}

Finding& tell_constant(const CallRef& set, Report& report) {
  return report.at(
      set.ref(), Confidence::certain,
      "set_epoch is called with a constant: the sampler gives the same order in every epoch");
}

// The same for a loader of a file that is not there: that it is told an epoch shows its sampler.
// Another call, with a number that changes, may be for the same loader.
void check_unseen_samplers(const Program& program, Report& report) {
  const auto sets = program.calls_named("set_epoch");
  if (assigns_epoch(program) || std::any_of(sets.begin(), sets.end(), [&](const CallRef& set) {
        return !set.positional(0) || !never_changes(program, set.positional(0));
      }))
    return;
  for (const CallRef& set : sets) {
    const auto around = program.loops_around(set.ref());
    const Ref epochs = around.empty() ? Ref{} : around.front();
    const auto& loops = program.training_loops();
    if (!epochs || !samplers_set(program, set).empty() ||
        epoch_count(program, epochs).value_or(2) < 2 ||
        !facts::contains(facts::lowered(set.receiver().text()), "sampler") ||
        facts::contains(facts::lowered(set.receiver().text()), "batch_sampler") ||
        std::none_of(loops.begin(), loops.end(),
                     [&](const diagnose::TrainingLoop& loop) { return loop.epochs == epochs; }))
      continue;
    tell_constant(set, report).help =
        "Call sampler.set_epoch(epoch) at the top of each epoch, with the number of the epoch.";
    return;
  }
}

// The sampler whose order set_epoch changes; empty for loaders of an evaluation, also of an attack
// on the model with backward passes of its own.
CallRef reordered_sampler(const Program& program, const CallRef& loader) {
  const CallRef sampler = sampler_of(program, loader);
  const bool is_reordered = sampler && !orders_itself(program, sampler) &&
                            !is_evaluation_loader(program, loader) &&
                            !program.is_literal_false(sampler.argument(3, "shuffle"));
  return is_reordered ? sampler : CallRef{};
}

constexpr std::string_view kSameOrder =
    "no set_epoch call on the DistributedSampler: every epoch visits the samples in the same order";
constexpr std::string_view kSetEpoch = "Call sampler.set_epoch(epoch) at the top of each epoch.";

constexpr std::string_view kRestart =
    "no set_epoch call on the DistributedSampler before the loader starts again: every pass visits "
    "the samples in the same order";

// for epoch in range(n), or from 0: the first pass has the number that a sampler begins with.
bool begins_at_zero(const Program& program, Ref epochs) {
  if (epochs.kind() != Kind::for_statement) return false;
  const Ref rounds = program.strip_iterable(epochs.child(Field::right));
  for (const diagnose::Source& source : program.sources(rounds)) {
    const CallRef range = program.as_call(program.strip_iterable(source.ref));
    if (!range || range.call->name != "range" ||
        (range.positional(1) && program.integer(range.positional(0)) != 0))
      return false;
  }
  return true;
}

// epoch of for epoch in ..., also where the loop hands it to a function.
bool is_number_of_round(const Program& program, Ref number, Ref epochs) {
  const Ref seen = diagnose::seen_in(program, number, program.enclosing_function(epochs));
  return seen && seen.text() == epochs.child(Field::left).text();
}

// loader.sampler.set_epoch(epoch) inside of the loop over the loader, which has drawn its order by
// then: the first two passes have the same one.
void check_late_sets(const Program& program, Report& report) {
  const auto sets = program.calls_named("set_epoch");
  if (sets.size() != 1 || program.framework_distributes()) return;
  const CallRef& set = sets.front();
  const Ref object = set.receiver();
  const auto around = program.loops_around(set.ref());
  const Ref batches = around.empty() ? Ref{} : around.front();
  const Ref epochs = around.size() > 1 ? around[1] : Ref{};
  if (!epochs || batches.kind() != Kind::for_statement || !begins_at_zero(program, epochs) ||
      !is_number_of_round(program, set.positional(0), epochs) ||
      epoch_count(program, epochs).value_or(2) < 2 || !object)
    return;
  const auto& loops = program.training_loops();
  if (std::none_of(loops.begin(), loops.end(),
                   [&](const diagnose::TrainingLoop& loop) { return loop.batches == batches; }))
    return;
  // The sampler that is told is the one that this loop draws from.
  const auto told = samplers_set(program, set);
  bool draws = false;
  for (const CallRef& loader :
       loaders_of(program, program.strip_iterable(batches.child(Field::right)))) {
    const CallRef sampler = reordered_sampler(program, loader);
    draws = draws || (sampler && std::any_of(told.begin(), told.end(), [&](const CallRef& each) {
                        return each.ref() == sampler.ref();
                      }));
  }
  if (!draws) return;
  report
      .at(set.ref(), Confidence::certain,
          "set_epoch is called inside of the loop over the batches, whose order is drawn by then: "
          "the first two epochs have the same one, and each later one that of its number before")
      .help = "Call it above the loop over the batches.";
}

// A script that only reads its loader, as people post it with a question: nothing is trained.
void check_reading_loops(const Program& program, Report& report) {
  if (!program.calls_named("backward").empty() ||
      (program.framework_distributes() && !program.uses(Api::hvd_init)) ||
      program.calls(Api::distributed_sampler).empty())
    return;
  const auto& tree = program.root().tree();
  for (NodeId id = 0; id < tree[0].last; ++id) {
    const Ref loop{&program.root(), id};
    if (loop.kind() != Kind::for_statement) continue;
    const Ref epochs = program.innermost_loop(loop);
    if (!epochs || epochs.kind() != Kind::for_statement || program.is_evaluation(loop) ||
        !facts::contains(epochs.child(Field::left).text(), "epoch"))
      continue;
    for (const CallRef& loader : loaders_of(program, loop.child(Field::right))) {
      const CallRef sampler = reordered_sampler(program, loader);
      if (!sampler || sets_epoch(program, sampler)) continue;
      report.at(epochs, Confidence::certain, std::string(kSameOrder)).help = kSetEpoch;
      return;
    }
  }
}

// The name that the caller has for what it hands down to the function.
Ref named_by_caller(const Program& program, Ref name) {
  if (!facts::is_parameter(program, name)) return name;
  const auto& sites = program.call_sites(program.enclosing_function(name));
  return sites.size() == 1
             ? diagnose::seen_in(program, name, program.enclosing_function(sites.front().ref()))
             : name;
}

// Loaders among what the call is given, also in a dictionary: step(model, loaders).
std::vector<CallRef> loaders_handed(const Program& program, const CallRef& call) {
  std::vector<CallRef> out;
  for (std::size_t i = 0; const Ref argument = call.positional(i); ++i) {
    const auto direct = loaders_of(program, argument);
    out.insert(out.end(), direct.begin(), direct.end());
    for (const Ref item : facts::items_stored_in(named_by_caller(program, argument)))
      for (const CallRef& loader : loaders_of(program, item)) out.push_back(loader);
  }
  return out;
}

// The epochs of a training loop whose loader is known: that is asked for itself.
bool is_asked_already(const Program& program, Ref loop) {
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& each) {
    return each.epochs == loop && !loaders_of(program, each.iterable).empty();
  });
}

// for epoch in ...: train_epoch(model, loader), where train_epoch() is in a file that is not there,
// or is given what it does not expect. Without the epoch it cannot set it either.
void check_handed_loaders(const Program& program, Report& report) {
  if (program.mentions("set_epoch") || program.framework_distributes() || assigns_epoch(program) ||
      !program.has_ddp())
    return;
  for (const diagnose::Module* module : program.modules())
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      const Ref epoch = loop.child(Field::left);
      if (loop.kind() != Kind::for_statement || epoch.kind() != Kind::identifier ||
          !facts::contains(epoch.text(), "epoch") || is_asked_already(program, loop) ||
          epoch_count(program, loop).value_or(2) <= 1)
        continue;
      for (const CallRef& call : facts::calls_in(loop.child(Field::body))) {
        if (says_any(call.call->name, {"val", "eval", "test", "predict"}) ||
            program.is_evaluation(call.ref()) ||
            variables_in(call.ref()).contains(std::string(epoch.text())))
          continue;
        const auto handed = loaders_handed(program, call);
        const auto orders_again = [&](const CallRef& loader) {
          return static_cast<bool>(reordered_sampler(program, loader));
        };
        if (!std::any_of(handed.begin(), handed.end(), orders_again)) continue;
        report.at(loop, Confidence::likely, std::string(kSameOrder)).help = kSetEpoch;
        return;
      }
    }
}

// except StopIteration: batches = iter(loader): a pass over the data begins here, whatever counts
// the steps. Samplers that were told of a loop over epochs are left out.
void check_restarts(const Program& program, const std::vector<Ref>& told, Report& report) {
  if (program.framework_distributes() || program.calls_named("backward").empty()) return;
  for (const CallRef& starts : program.calls_named("iter")) {
    const Ref node = starts.ref();
    if (!starts_again(program, starts) || program.is_evaluation(node) ||
        !facts::is_reachable(program, node))
      continue;
    for (const CallRef& loader : loaders_of(program, starts.positional(0))) {
      const CallRef sampler = reordered_sampler(program, loader);
      const Ref seed = sampler ? sampler.argument(4, "seed") : Ref{};
      if (!sampler || sets_epoch(program, sampler) ||
          (seed && program.written(seed).kind() != Kind::integer) ||
          std::find(told.begin(), told.end(), sampler.ref()) != told.end())
        continue;
      report.at(node, Confidence::certain, std::string(kRestart)).help =
          "Count the passes, and call sampler.set_epoch(passes) above iter(loader).";
      return;
    }
  }
}

// data = Samples(f"order{epoch}.txt"), made anew in each epoch.
bool reads_other_data_each_epoch(const Program& program, const diagnose::TrainingLoop& loop,
                                 const CallRef& sampler) {
  const Ref epoch = loop.epochs.child(diagnose::Field::left);
  if (!epoch || epoch.kind() != diagnose::Kind::identifier) return false;
  const auto& made = program.sources(sampler.argument(0, "dataset"));
  return std::any_of(made.begin(), made.end(), [&](const diagnose::Source& source) {
    const auto& tree = source.ref.module->tree();
    if (!runs_in(program, loop.epochs, source.ref)) return false;
    for (diagnose::NodeId at = source.ref.node; at < tree[source.ref.node].last; ++at)
      if (tree[at].kind == diagnose::Kind::identifier &&
          is_number_of_round(program, source.ref.with(at), loop.epochs))
        return true;
    return false;
  });
}

// The sampler is made anew in each epoch, in the loop itself: that is where to look.
bool made_in_epoch(const Program& program, const diagnose::TrainingLoop& loop,
                   const CallRef& sampler) {
  return sampler.module == loop.epochs.module &&
         program.enclosing_function(sampler.ref()) == program.enclosing_function(loop.epochs) &&
         sampler.module->tree().contains(loop.epochs.node, sampler.call->node);
}

// A script without ranks that shares a helper with one that has them: without a process group the
// sampler cannot even be made, so another way through the helper is meant.
bool is_of_another_program(const Program& program, const CallRef& sampler) {
  return sampler.module != &program.root() && !facts::is_distributed(program) &&
         !program.has_ddp() && !program.uses(Api::hvd_init) && !program.framework_distributes() &&
         !sampler.argument(1, "num_replicas") && !program.root().has_star_imports();
}

Finding& tell_same_order(const Program& program, const diagnose::TrainingLoop& loop,
                         const CallRef& sampler, Report& report) {
  if (const CallRef constant = constant_set(program)) return tell_constant(constant, report);
  if (const CallRef once = set_once(program, loop))
    return report.at(once.ref(), Confidence::certain,
                     "set_epoch is called once, above the loop: the sampler gives the same order "
                     "in every epoch");
  return report.at(made_in_epoch(program, loop, sampler) ? sampler.ref() : loop.epochs,
                   Confidence::certain, std::string(kSameOrder));
}

}  // namespace

void check_missing_set_epoch(const Program& program, Report& report) {
  if (program.lightning_distributes() || program.imports("accelerate")) return;
  check_epochs_of_engines(program, report);
  if (program.framework_distributes() && (program.imports("ignite") || program.imports("mmcv")))
    return;
  check_late_sets(program, report);
  check_unreached_samplers(program, report);
  check_epochs_of_loaders(program, report);
  check_reading_loops(program, report);
  check_handed_loaders(program, report);
  check_endless_loaders(program, report);
  check_unseen_samplers(program, report);
  std::vector<Ref> told;
  for (const diagnose::TrainingLoop& loop : program.training_loops()) {
    if (!loop.epochs || !loop.iterable || !begins_again(program, loop)) continue;
    for (const CallRef& loader : loaders_passed_over(program, loop)) {
      const CallRef sampler = reordered_sampler(program, loader);
      if (!sampler || sets_epoch(program, sampler, &loop) ||
          reads_other_data_each_epoch(program, loop, sampler) ||
          is_sampler_left_out(program, loop.batches, sampler) ||
          is_of_another_program(program, sampler))
        continue;
      const auto epochs = epoch_count(program, loop.epochs);
      if (epochs && *epochs <= 1) continue;
      Finding& finding = tell_same_order(program, loop, sampler, report);
      finding.help =
          "Call sampler.set_epoch(epoch) at the top of each epoch, before the loader is "
          "iterated.";
      note_sampler(sampler, finding);
      fix_set_epoch(program, loop, loader, sampler, finding);
      told.push_back(sampler.ref());
      break;
    }
  }
  check_restarts(program, told, report);
}

namespace {

// The same order in every one of at least two epochs.
bool order_repeats(const RunEvidence& run) {
  const Json* orders = run.first("epoch_orders");
  if (orders == nullptr || orders->size() < 2) return false;
  for (const Json& order : *orders)
    if (order != orders->front()) return false;
  return true;
}

}  // namespace

void judge_missing_set_epoch(const RunEvidence& run, RunReport& report) {
  if (run.number("shuffled") != 1 || !order_repeats(run)) return;
  const Json& orders = *run.first("epoch_orders");
  Finding& finding = report.add(Confidence::certain,
                                "all " + std::to_string(orders.size()) +
                                    " epochs visited the samples in the same order (index hash " +
                                    orders.front().get<std::string>() + ")");
  finding.help = "Call sampler.set_epoch(epoch) before the loader is iterated in each epoch.";
  finding.evidence.emplace_back("index hash per epoch", listed(orders));
}

Price price_missing_set_epoch(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced = order_repeats(broken);
  price.gone = cured.first("epoch_orders") != nullptr && !order_repeats(cured);
  const Interval lost = paired_loss(broken.first("accuracy"), cured.first("accuracy"));
  price.cost = 100 * lost.mean;
  price.unit = "accuracy points lost (95 % interval " + figure(100 * lost.low, 2) + " to " +
               figure(100 * lost.high, 2) + ", " + std::to_string(lost.seeds) + " seeds)";
  if (price.reproduced)
    price.seen = "silent: every epoch has the index hash " +
                 broken.first("epoch_orders")->front().get<std::string>();
  return price;
}

}  // namespace bench::pitfalls
