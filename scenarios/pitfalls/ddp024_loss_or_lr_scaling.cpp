#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/paired_loss.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::Source;
using diagnose::TrainingLoop;

namespace {

// loss for scaler.scale(loss / accumulate), which makes no mean of a sum.
Ref without_scaling(const Program& program, Ref loss) {
  for (int depth = 0; depth < 3; ++depth) {
    const CallRef call = program.as_call(loss);
    if (call && call.call->name == "scale" && call.positional(0)) {
      loss = call.positional(0);
      continue;
    }
    const bool divided =
        loss.kind() == Kind::binary && loss.module->tree()[loss.node].op == Op::divide &&
        facts::contains(facts::lowered(loss.child(diagnose::Field::right).text()), "accum");
    if (!divided) break;
    loss = loss.child(diagnose::Field::left);
  }
  return loss;
}

bool divides(const Program& program, Ref loss) {
  const auto& tree = loss.module->tree();
  for (NodeId id = loss.node; id < tree[loss.node].last; ++id)
    if (tree[id].kind == Kind::binary && (tree[id].op == Op::divide || tree[id].op == Op::multiply))
      return true;
  for (const Source& source : program.sources(loss))
    if (source.ref != loss && source.ref.kind() == Kind::binary) return true;
  return false;
}

// Optimizers that divide the gradient by its own size: a constant factor changes nothing.
bool ignores_scale(const Program& program) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop"});
  const auto optimizers = program.calls(Api::optimizer);
  return !optimizers.empty() &&
         std::all_of(optimizers.begin(), optimizers.end(),
                     [](const CallRef& call) {
                       return std::find(kNames.begin(), kNames.end(), call.call->name) !=
                              kNames.end();
                     }) &&
         !program.mentions("clip_grad_norm_");
}

// The loader of a training loop that ranks share by a sampler, where it reads this data.
bool is_shared_out(const Program& program, Ref data, std::string_view batch) {
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      const Ref given = loader.argument(0, "dataset");
      const Ref size = loader.argument(1, "batch_size");
      if (given && size && given.text() == data.text() && size.text() == batch &&
          sampler_of(program, loader))
        return true;
    }
  return false;
}

// len(data) // batch_size and math.ceil(len(data) / batch_size) * epochs, of the data and the batch
// that a loader with a DistributedSampler is given.
bool counts_steps_of_one(const Program& program, Ref steps) {
  const auto& tree = steps.module->tree();
  for (NodeId id = steps.node; id < tree[steps.node].last; ++id) {
    if (tree[id].kind != Kind::binary ||
        (tree[id].op != Op::divide && tree[id].op != Op::floor_divide))
      continue;
    const Ref division = steps.with(id);
    const Ref batch = division.child(diagnose::Field::right);
    for (const CallRef& call : facts::calls_in(division.child(diagnose::Field::left)))
      if (call.call->name == "len" && call.positional(0) &&
          is_shared_out(program, call.positional(0), batch.text()))
        return true;
  }
  return false;
}

// A number of processes stands in the expression, or a name that the script changes later:
// steps //= world_size.
bool counts_processes(const Program& program, Ref value) {
  const std::string text = facts::lowered(value.text());
  for (const std::string_view word : {"world", "gpu", "proc", "replica", "rank", "device"})
    if (facts::contains(text, word)) return true;
  const auto& module = *value.module;
  const auto& tree = module.tree();
  for (NodeId id = value.node; id < tree[value.node].last; ++id) {
    const bool is_field = tree[id].kind == Kind::attribute;
    if (!is_field && tree[id].kind != Kind::identifier) continue;
    const Ref each = value.with(id);
    if (program.is_world_size(each)) return true;
    if (tree[tree[id].parent].kind == Kind::attribute) continue;  // args in args.size
    const Ref name = is_field ? each.child(diagnose::Field::attribute) : each;
    std::size_t changes = 0;
    for (const std::uint32_t index : module.defs_of(name.text(), is_field)) {
      const auto& def = module.defs()[index];
      // The same name in another function is another variable.
      if (module.text(def.target) != each.text() ||
          (!is_field && module.scope_of(def.target) != module.scope_of(id) &&
           module.scope_of(def.target) != 0))
        continue;
      if (def.kind == diagnose::DefKind::assign) ++changes;
      if (def.kind == diagnose::DefKind::augmented) return true;
    }
    // args.size = args.size // world_size: an option that the script changes
    if (changes > (is_field ? 0U : 1U)) return true;
  }
  return false;
}

// The number of steps, or what the names in it hold, and nothing in it counts processes.
Ref steps_of_one_process(const Program& program, Ref steps) {
  if (counts_processes(program, steps)) return {};
  const auto& sources = program.sources(steps);
  if (std::any_of(sources.begin(), sources.end(),
                  [&](const Source& source) { return counts_processes(program, source.ref); }))
    return {};
  for (const Source& source : sources) {
    if (source.how != Source::How::value) continue;
    if (counts_steps_of_one(program, source.ref)) return steps;
    // n = len(data) // batch_size, above total_steps=n * epochs
    const auto& tree = source.ref.module->tree();
    for (NodeId id = source.ref.node; id < tree[source.ref.node].last; ++id) {
      if (tree[id].kind != Kind::identifier) continue;
      const auto& values = program.sources(source.ref.with(id));
      if (values.size() == 1 && values.front().ref.module == source.ref.module &&
          values.front().ref.kind() != Kind::identifier &&
          counts_steps_of_one(program, values.front().ref) &&
          !counts_processes(program, values.front().ref))
        return steps;
    }
  }
  return {};
}

void check_schedules(const Program& program, Report& report) {
  // Accelerate's schedulers make a step for each process.
  if (program.framework_distributes()) return;
  std::vector<CallRef> schedulers(program.calls(Api::scheduler).begin(),
                                  program.calls(Api::scheduler).end());
  for (const std::string_view name :
       {"get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup", "get_scheduler"})
    for (const CallRef& call : program.calls_named(name)) schedulers.push_back(call);
  const auto given = [](const CallRef& scheduler, std::string_view name) {
    const std::string_view maker = scheduler.call->name;
    if (name == "T_max" && maker == "CosineAnnealingLR") return scheduler.argument(1, name);
    if (name == "total_steps" && maker == "OneCycleLR") return scheduler.argument(2, name);
    if (name == "num_training_steps" && maker.ends_with("_with_warmup"))
      return scheduler.argument(2, name);
    return scheduler.keyword(name);
  };
  for (const CallRef& scheduler : schedulers)
    for (const std::string_view name :
         {"total_steps", "steps_per_epoch", "T_max", "num_training_steps"}) {
      const Ref steps = given(scheduler, name);
      if (!steps || !facts::is_reachable(program, steps) || !steps_of_one_process(program, steps))
        continue;
      Finding& finding = report.at(steps, Confidence::likely,
                                   "the schedule counts the steps of one process: each rank makes "
                                   "world size times fewer, so the "
                                   "schedule never ends");
      finding.severity = Severity::warning;
      finding.help = "Use len(loader), or divide by the world size.";
    }
}

// mean = loss.clone(); dist.all_reduce(mean); mean /= world_size; return mean: the call of clone()
// whose copy the function reduces and divides.
bool is_mean_over_ranks(const Program& program, const CallRef& clone) {
  const auto function = program.enclosing_function(clone.ref());
  const std::string_view copy = program.assigned_name(clone.ref());
  if (!function || copy.empty() || clone.call->name != "clone" ||
      facts::contains(clone.ref().text(), "detach"))
    return false;
  const auto& tree = function.module->tree();
  const auto reduces = program.calls(Api::all_reduce);
  if (std::none_of(reduces.begin(), reduces.end(), [&](const CallRef& reduce) {
        return program.enclosing_function(reduce.ref()) == function &&
               reduce.positional(0).text() == copy;
      }))
    return false;
  for (NodeId node = function.function->body; node < tree[function.function->body].last; ++node) {
    const Ref division = clone.ref().with(node);
    if ((division.kind() == Kind::binary || division.kind() == Kind::augmented_assignment) &&
        tree[node].op == Op::divide && division.child(diagnose::Field::left).text() == copy)
      return true;
  }
  return false;
}

// losses["loss"] = reduce_tensor(losses["loss"]) below the backward pass alone, where the next
// round has another dictionary.
bool is_given_below_only(Ref loss, Ref backward) {
  if (loss.kind() != Kind::subscript) return false;
  const auto& module = *loss.module;
  const auto& items = module.item_defs_of(loss.child(diagnose::Field::value).text());
  bool is_given = false;
  for (const std::uint32_t index : items) {
    const diagnose::Def& def = module.defs()[index];
    if (module.text(def.target) != loss.text() ||
        module.function_of(def.target) != module.function_of(loss.node))
      continue;
    if (def.target < backward.node) return false;
    is_given = true;
  }
  return is_given;
}

// loss = reduce_tensor(loss), and loss.backward(): autograd knows of the division and not of the
// sum, and DDP divides once more.
void check_reduced_loss(const Program& program, Report& report) {
  if (ignores_scale(program)) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = without_scaling(program, facts::loss_of(backward));
      if (is_given_below_only(loss, backward.ref())) continue;
      for (const Source& source : program.sources(loss)) {
        const CallRef clone = program.as_call(source.ref);
        if (!clone || !is_mean_over_ranks(program, clone)) continue;
        Finding& finding =
            report.at(backward.ref(), Confidence::likely,
                      "the loss is a mean over the ranks already, of which autograd sees the "
                      "division alone, and DDP averages the gradients once more: they are world "
                      "size times too small");
        finding.severity = Severity::warning;
        finding.help = "Go back from the rank's own loss, and reduce a detached copy for the log.";
        return;
      }
    }
}

// delta.requires_grad_(), loss.backward(), delta.grad.sign(): an attack wants the gradient of its
// input, which DDP does not average; no optimizer steps in the function, nor in one that calls it.
bool differentiates_input(const Program& program, const CallRef& backward) {
  std::vector<CallRef> calls;
  std::string text;
  for (const Ref place : diagnose::places_of(program, backward.ref()))
    if (const auto function = program.enclosing_function(place)) {
      const Ref body{function.module, function.function->body};
      for (const CallRef& call : facts::calls_in(body)) calls.push_back(call);
      text += body.text();
    }
  if (std::any_of(calls.begin(), calls.end(),
                  [](const CallRef& call) { return call.call->name == "step"; }))
    return false;
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->name == "requires_grad_" && call.receiver().kind() == Kind::identifier &&
           !program.is_literal_false(call.positional(0)) &&
           facts::contains(text, std::string(call.receiver().text()) + ".grad.");
  });
}

}  // namespace

void check_loss_or_lr_scaling(const Program& program, Report& report) {
  if (!program.has_ddp()) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = without_scaling(program, facts::loss_of(backward));
      if (divides(program, loss) || ignores_scale(program) ||
          differentiates_input(program, backward))
        continue;
      for (const Source& source : program.sources(loss)) {
        const CallRef call = program.as_call(source.ref);
        if (!call) continue;
        CallRef made = call.call->api == Api::loss
                           ? call
                           : program.origin({call.module, call.call->function}, Api::loss);
        if (!made || program.string(made.keyword("reduction")).value_or("") != "sum") continue;
        Finding& finding =
            as_in_trial(report.at(made.ref(), Confidence::likely,
                                  "a summed loss under DDP: gradients are averaged over ranks, "
                                  "so they are world size times "
                                  "smaller than those of one process with the whole batch"),
                        "sum-loss");
        finding.severity = Severity::warning;
        finding.help =
            "Use reduction=\"mean\", or multiply by the world size and divide by the global count.";
      }
    }
  check_reduced_loss(program, report);
  check_schedules(program, report);
  for (const CallRef& scheduler : program.calls(Api::scheduler))
    for (const std::string_view name : {"total_steps", "steps_per_epoch", "T_max"}) {
      const Ref steps = scheduler.keyword(name);
      if (!steps || steps.kind() != Kind::binary || steps_of_one_process(program, steps) ||
          steps.module->tree()[steps.node].op != Op::floor_divide)
        continue;
      const std::string_view text = steps.text();
      if (!facts::contains(text, "len(") || !facts::contains(text, "batch") ||
          facts::contains(text, "world") || facts::contains(text, "loader"))
        continue;
      Finding& finding = report.at(steps, Confidence::likely,
                                   "the schedule counts the steps of one process: each rank makes "
                                   "world size times fewer, so the "
                                   "schedule never ends");
      finding.severity = Severity::warning;
      finding.help = "Use len(loader), or divide by the world size.";
    }
}

namespace {

// How often too small the gradient is against one process with the whole batch; 1 is right.
double gradient_ratio(const RunEvidence& run) {
  const double ratio = run.number("summed_gradient_of_one_process") / run.number("summed_gradient");
  return std::isfinite(ratio) ? ratio : 1;
}

// The growth of the batch against that of the learning rate; 1 where both grew alike.
double rate_ratio(const RunEvidence& run) {
  const double ratio = run.number("global_batch") / run.number("batch_of_one_process") /
                       (run.number("learning_rate") / run.number("rate_of_one_process"));
  return std::isfinite(ratio) ? ratio : 1;
}

bool is_one(double ratio) { return std::fabs(ratio - 1) < 1e-4; }

}  // namespace

void judge_loss_or_lr_scaling(const RunEvidence& run, RunReport& report) {
  if (!is_one(gradient_ratio(run))) {
    Finding& finding = report.add(
        Confidence::certain, "the gradient of the summed loss is " + figure(gradient_ratio(run)) +
                                 " times smaller than that of one process with the batch of "
                                 "all ranks");
    finding.help = "Take the mean over the global batch, or multiply by the world size.";
    finding.evidence.emplace_back("gradient sum", figure(run.number("summed_gradient")));
    finding.evidence.emplace_back("of one process",
                                  figure(run.number("summed_gradient_of_one_process")));
  }
  if (is_one(rate_ratio(run))) return;
  Finding& finding = report.add(Confidence::likely,
                                "the global batch grew to " + figure(run.number("global_batch")) +
                                    " samples, and the learning rate stayed at " +
                                    figure(run.number("learning_rate"), 3));
  finding.help = "Scale the learning rate with the global batch, after a warm-up.";
  finding.evidence.emplace_back("batch of one process", figure(run.number("batch_of_one_process")));
}

Price price_loss_or_lr_scaling(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  if (broken.first("summed_gradient") != nullptr) {
    price.cost = gradient_ratio(broken);
    price.reproduced = !is_one(price.cost);
    price.gone = cured.first("summed_gradient") != nullptr && is_one(gradient_ratio(cured));
    price.unit = "times smaller gradients";
    price.seen = "silent: gradient sum " + figure(broken.number("summed_gradient")) +
                 " instead of " + figure(broken.number("summed_gradient_of_one_process"));
    return price;
  }
  const Interval lost = paired_loss(broken.first("accuracy"), cured.first("accuracy"));
  price.reproduced = !is_one(rate_ratio(broken)) && lost.low > 0;
  price.gone = cured.first("accuracy") != nullptr && is_one(rate_ratio(cured));
  price.cost = 100 * lost.mean;
  price.unit = "accuracy points lost after one epoch (95 % interval " + figure(100 * lost.low, 2) +
               " to " + figure(100 * lost.high, 2) + ", " + std::to_string(lost.seeds) + " seeds)";
  price.seen = "silent: half as many steps of the same size";
  return price;
}

}  // namespace bench::pitfalls
