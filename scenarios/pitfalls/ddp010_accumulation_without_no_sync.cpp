#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/ranks/launched_with.hpp"
#include "scenarios/pitfalls/reach/as_configured.hpp"
#include "scenarios/pitfalls/reach/left_at_one.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/steps/step_guards.hpp"
#include "scenarios/pitfalls/wrappers/bare_training.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::TrainingLoop;

namespace {

// with torch.no_grad(), ddp.no_sync(): an evaluation passes nothing back.
bool is_of_evaluation(const Program& program, Ref no_sync) {
  const auto& tree = no_sync.module->tree();
  const NodeId with = tree.ancestor(no_sync.node, Kind::with_statement);
  if (with == diagnose::kNoNode) return false;
  const Ref body = no_sync.with(with).child(Field::body);
  return body && !tree.contains(body.node, no_sync.node) && program.under_no_grad(body);
}

// model.no_sync() or model.no_sync, but where an evaluation alone is kept from it.
bool has_no_sync(const Program& program) {
  for (const CallRef& call : program.calls_named("no_sync"))
    if (!call.receiver()) return true;
  for (const diagnose::Module* module : program.modules()) {
    const auto& tree = module->tree();
    if (!tree.holds("no_sync")) continue;
    for (const NodeId node : module->nodes_of(Kind::attribute))
      if (tree.text(tree.child(node, Field::attribute)) == "no_sync" &&
          !is_of_evaluation(program, {module, node}))
        return true;
  }
  return false;
}

bool synchronises_by_hand(const Program& program) {
  return (program.mentions("no_sync") && has_no_sync(program)) ||
         !program.calls_named("accumulate").empty() ||
         program.mentions("require_backward_grad_sync") || program.mentions("\"no_sync\"") ||
         program.mentions("'no_sync'");
}

// def __init__(self, passes=1) of a class, or def train(passes=1), that only other files call: they
// may give another number.
bool is_offered_default(const Program& program, Ref count) {
  const auto& sources = program.sources(count);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const auto& module = *source.ref.module;
    const NodeId node = module.tree().ancestor(source.ref.node, Kind::function);
    const diagnose::Function* function =
        node == diagnose::kNoNode ? nullptr : module.function_at(node);
    if (function == nullptr || module.tree().contains(function->body, source.ref.node))
      return false;
    const auto owner = program.enclosing_class(source.ref);
    const bool is_made =
        owner && function->name == "__init__" && !program.calls_named(owner.cls->name).empty();
    return !is_made && program.call_sites({&module, function}).empty();
  });
}

// An option whose default is 1 is there to be raised, unless the launch lines leave it there.
bool is_always_one(const Program& program, Ref count) {
  const diagnose::Value value = program.evaluate(count);
  return value.is_integer() && value.integer == 1 && !value.is_default &&
         !is_offered_default(program, count);
}

// "passes" in config, hasattr(args, "passes"), args.passes is not None: whether it was set at all.
bool asks_whether_set(Ref condition) {
  const std::string_view text = condition.text();
  return facts::contains(text, " in ") || facts::contains(text, "hasattr(") ||
         text.ends_with(" is not None") || text.ends_with(" is None");
}

// config["passes"] if "passes" in config else 1, and `args.passes or 1`: the 1 is a default.
bool stands_in_for_setting(Ref one) {
  const auto& tree = one.module->tree();
  const Ref parent = one.with(tree[one.node].parent);
  if (parent.kind() == Kind::boolean) return true;
  return parent.kind() == Kind::conditional &&
         asks_whether_set(parent.with(tree.child_at(parent.node, 1)));
}

// if "passes" in config: passes = config["passes"]
bool is_set_by_choice(const Program& program, const diagnose::Source& source) {
  const auto guards = program.guards(source.ref);
  return std::any_of(guards.begin(), guards.end(),
                     [](const Guard& guard) { return asks_whether_set(guard.condition); });
}

// passes = 1, and more of them only in a branch: if batch > limit: passes = batch // limit.
bool is_one_by_itself(const Program& program, Ref count) {
  const auto& sources = program.sources(count);
  if (std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
        return is_set_by_choice(program, source);
      }))
    return false;
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return source.how == diagnose::Source::How::value && is_always_one(program, source.ref) &&
           !stands_in_for_setting(source.ref);
  });
}

// optimizer.step(), and optimizer.step_and_update_lr() of one that has a schedule of its own.
std::vector<CallRef> steps_of(const Program& program) {
  const auto plain = program.calls_named("step");
  std::vector<CallRef> steps(plain.begin(), plain.end());
  for (const diagnose::Module* module : program.modules())
    for (const auto& call : module->calls())
      if (call.name.starts_with("step_and_")) steps.push_back({module, &call});
  return steps;
}

bool is_one_as_launched(const Program& program, Ref count) {
  const auto values = facts::values_as_launched(program, count);
  return !values.empty() && std::all_of(values.begin(), values.end(), [](const auto& value) {
    return value.is_integer() && value.integer == 1;
  });
}

// Nothing is accumulated as the program is used.
void tell_if_one(const Program& program, Ref passes, Finding& finding) {
  if (is_one_by_itself(program, passes) || is_one_as_launched(program, passes))
    tell_as_note(finding);
  tell_as_note(finding, facts::one_as_configured(program, passes));
  if (finding.severity != Severity::info)
    tell_as_note(finding, facts::left_at_one(program, passes));
}

// range(k), and batch.chunk(k), torch.split(batch, n) or micro_batches: the parts of one batch.
bool goes_over_parts(const Program& program, Ref inner) {
  const Ref parts = program.strip_iterable(inner.child(Field::right));
  const CallRef call = program.as_call(parts);
  if (call && call.call->name == "range") return !is_always_one(program, call.positional(0));
  const std::string text = facts::lowered(parts.text());
  return facts::contains(text, ".chunk(") || facts::contains(text, "split(") ||
         facts::contains(text, "micro");
}

// outputs = model(batch), and the loop goes back through one of its outputs each time: what runs in
// the loop around and not in this one is one pass.
bool is_one_pass(const Program& program, Ref inner) {
  const Ref around = program.loops_around(inner).front();
  bool in_inner = false;
  bool in_around = false;
  for (const diagnose::ForwardCall& forward : program.forward_calls()) {
    in_inner = in_inner || runs_in(program, inner, forward.call.ref());
    in_around = in_around || runs_in(program, around, forward.call.ref());
  }
  return in_around && !in_inner;
}

// An attack on the inputs: its gradients are gone before the pass that the step is for.
bool is_cleared_between(const Program& program, Ref inner, const CallRef& step) {
  const auto calls = program.calls_named("zero_grad");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.module == inner.module &&
           call.call->node >= inner.module->tree()[inner.node].last &&
           call.call->node < step.call->node && !runs_instead_of(program, call.ref(), step.ref());
  });
}

// model.module(part) goes past the wrapper, which has nothing to reduce then.
bool goes_past_wrapper(Ref body) {
  return facts::contains(body.text(), ".module(") || facts::contains(body.text(), ".module.");
}

// What stands around the pass back: its loop, or the whole function where that has none.
Ref around_pass(const Program& program, const CallRef& backward) {
  if (const Ref loop = program.innermost_loop(backward.ref())) return loop;
  const auto function = program.enclosing_function(backward.ref());
  return function ? Ref{function.module, function.function->body} : backward.ref();
}

// for part in range(k): model(part), backward(); the step comes behind the loop.
bool follows_micro_batches(const Program& program, const TrainingLoop& loop, const CallRef& step) {
  for (const CallRef& backward : loop.backwards) {
    const auto loops = program.loops_around(backward.ref());
    const Ref inner = loops.empty() ? Ref{} : loops.front();
    if (!inner || inner.kind() != Kind::for_statement || inner.module != step.module ||
        step.call->node < inner.module->tree()[inner.node].last ||
        program.enclosing_function(inner) != program.enclosing_function(step.ref()) ||
        loops.size() < 2 || !goes_over_parts(program, inner))
      continue;
    const auto inside = [&](const CallRef& call) { return runs_in(program, inner, call.ref()); };
    bool steps_inside = false;
    for (const std::string_view name : {"step", "zero_grad"})
      for (const CallRef& call : program.calls_named(name))
        steps_inside = steps_inside || inside(call);
    if (is_one_pass(program, inner) || is_cleared_between(program, inner, step)) continue;
    if (!steps_inside && !goes_past_wrapper(inner.child(Field::body)) &&
        !goes_past_wrapper(around_pass(program, backward)))
      return true;
  }
  return false;
}

Ref remainder_in(Ref condition) {
  const auto& tree = condition.module->tree();
  Ref modulo;
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id)
    if (tree[id].op == Op::modulo) modulo = condition.with(id);
  return modulo.kind() == Kind::binary ? modulo.child(Field::right) : Ref{};
}

// epoch % 10 < 5: one of two branches for several rounds in a row, which counts no passes.
bool halves_rounds(Ref condition) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Op op = tree[condition.node].op;
  return (op == Op::less || op == Op::less_equal || op == Op::greater || op == Op::greater_equal) &&
         tree.text(tree.child_at(condition.node, 1)) != "0" &&
         tree.text(tree.child_at(condition.node, 1)) != "1";
}

// The number of passes in (step + 1) % accumulation == 0, also where that, or a part of it, has a
// name: is_last = (i + 1) % accumulation == 0 or i + 1 == len(loader).
Ref passes_of_remainder(const Program& program, Ref condition) {
  if (halves_rounds(condition)) return {};
  if (const Ref passes = remainder_in(condition)) return passes;
  const auto& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
    const Kind parent = id == condition.node ? Kind::boolean : tree[tree[id].parent].kind;
    if (tree[id].kind != Kind::identifier ||
        (parent != Kind::boolean && parent != Kind::not_expression))
      continue;
    for (const diagnose::Source& source : program.sources(condition.with(id)))
      if (source.how == diagnose::Source::How::value)
        if (const Ref passes = remainder_in(source.ref)) return passes;
  }
  return {};
}

// That in if passes == accumulation: passes = 0, with passes += 1 in the loop over the batches.
Ref passes_of_counter(const Program& program, const TrainingLoop& loop, const Guard& guard) {
  const auto& module = *guard.condition.module;
  const auto& tree = module.tree();
  const NodeId test = guard.condition.node;
  // if passes < accumulation: continue, above the step
  const bool is_below = !guard.holds && tree[test].kind == Kind::comparison &&
                        (tree[test].op == Op::less || tree[test].op == Op::not_equal);
  if ((!guard.holds && !is_below) || tree[test].kind != Kind::comparison ||
      tree.child_count(test) != 2 ||
      (!is_below && tree[test].op != Op::equal && tree[test].op != Op::greater_equal) ||
      &module != loop.batches.module)
    return {};
  const Ref counter = guard.condition.with(tree.child_at(test, 0));
  bool counts = false;
  bool starts_anew = false;
  for (const diagnose::Def* each : values_of(program, counter)) {
    const auto& def = *each;
    if (def.value == diagnose::kNoNode || !runs_in(program, loop.batches, {&module, def.target}))
      continue;
    const auto value = program.integer({&module, def.value});
    counts = counts || (def.kind == DefKind::augmented && value == 1);
    const bool there = is_below ? def.target > test : tree.contains(tree[test].parent, def.target);
    starts_anew = starts_anew || (def.kind == DefKind::assign && value == 0 && there);
  }
  return counts && starts_anew ? counter.with(tree.child_at(test, 1)) : Ref{};
}

// That in if step - last_step >= accumulation: last_step = step.
Ref passes_since_last(const Program& program, const TrainingLoop& loop, const Guard& guard) {
  const auto& module = *guard.condition.module;
  const auto& tree = module.tree();
  const NodeId test = guard.condition.node;
  if (!guard.holds || tree[test].kind != Kind::comparison || tree.child_count(test) != 2 ||
      (tree[test].op != Op::equal && tree[test].op != Op::greater_equal) ||
      &module != loop.batches.module)
    return {};
  const Ref since = guard.condition.with(tree.child_at(test, 0));
  if (since.kind() != Kind::binary || tree[since.node].op != Op::subtract) return {};
  const Ref now = since.child(Field::left);
  const Ref last = since.child(Field::right);
  if (!is_variable(last)) return {};
  for (const diagnose::Def* each : values_of(program, last)) {
    const auto& def = *each;
    if (def.kind == DefKind::assign && def.value != diagnose::kNoNode &&
        tree.contains(tree[test].parent, def.target) && tree.text(def.value) == now.text())
      return guard.condition.with(tree.child_at(test, 1));
  }
  return {};
}

// if batch % world_size != 0: raise, above the loop: it says whether there is a loop at all, not
// which of its passes step.
bool is_asked_above(const Program& program, const TrainingLoop& loop, Ref condition) {
  return program.enclosing_function(condition) == program.enclosing_function(loop.batches) &&
         !condition.module->tree().contains(loop.batches.node, condition.node);
}

// How many passes there are to a step, where no backward pass of the loop waits for the condition.
Ref passes_to_a_step(const Program& program, const TrainingLoop& loop, const Guard& guard) {
  if (is_asked_above(program, loop, guard.condition)) return {};
  Ref passes = passes_of_remainder(program, guard.condition);
  if (!passes) passes = passes_of_counter(program, loop, guard);
  if (!passes) passes = passes_since_last(program, loop, guard);
  for (const CallRef& backward : loop.backwards)
    for (const Guard& other : program.guards(backward.ref()))
      if (other.condition == guard.condition) return {};
  return passes && !is_always_one(program, passes) ? passes : Ref{};
}

// accelerator.backward(loss) of a loop, with an Accelerator that is told of no accumulation.
bool is_routed(const Program& program, const TrainingLoop& loop) {
  for (const CallRef& made : program.calls(Api::accelerator))
    if (made.has_splat() || made.keyword("gradient_accumulation_steps") ||
        made.keyword("gradient_accumulation_plugin"))
      return false;
  return std::any_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& backward) {
    return backward.positional(0) && is_of_accelerator(program, backward);
  });
}

// Accelerator's prepare() puts no DDP around a model whose layers the processes share.
std::string why_no_ddp(const Program& program, bool prepared) {
  return prepared && program.mentions("TorchTensorParallelPlugin")
             ? "under tensor parallelism there is no DDP"
             : "";
}

constexpr std::string_view kWasted =
    "gradients are accumulated over several passes, and DDP reduces them in every one: all but the "
    "last reduction are wasted";
constexpr std::string_view kUnderNoSync =
    "Run all passes but the last of each step under model.no_sync().";
constexpr std::string_view kWastedByAccelerate =
    "gradients are accumulated over several passes, and DDP, which accelerator.prepare() puts "
    "around the model, reduces them in every one: all but the last reduction are wasted";
constexpr std::string_view kUnderAccumulate =
    "Pass gradient_accumulation_steps to Accelerator, and run the body of the loop under "
    "accelerator.accumulate(model).";

// The optimizer, or a scaler that steps it, by what it comes from or by its name. opt.step(loss) is
// that of an optimizer which differentiates through its steps.
bool steps_optimizer(const Program& program, const CallRef& step) {
  const Ref receiver = step.receiver();
  const std::string name = facts::lowered(receiver.text());
  return program.comes_from(receiver, Api::optimizer) ||
         program.comes_from(receiver, Api::grad_scaler) || facts::contains(name, "optim") ||
         facts::contains(name, "scaler") || (name.ends_with("opt") && !step.positional(0));
}

// model = build_model(args) of another file, which is called in the loop and whose model.module is
// used: a wrapper, in a program that joins a process group.
bool trains_unseen_wrapper(const Program& program, const TrainingLoop& loop) {
  if (!program.uses(Api::init_process_group) || program.uses(Api::data_parallel)) return false;
  auto calls = facts::calls_in(loop.batches);
  for (const auto& function : program.reached(loop.batches))
    for (const CallRef& call : facts::calls_in({function.module, function.function->body}))
      calls.push_back(call);
  const auto& tree = loop.batches.module->tree();
  for (NodeId node = 0; node < tree.size(); ++node) {
    if (tree[node].kind != Kind::attribute ||
        tree.text(tree.child(node, Field::attribute)) != "module")
      continue;
    const std::string_view object = tree.text(tree.child(node, Field::object));
    if (std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
          const Ref model{call.module, call.call->function};
          return call.call->api == Api::none && is_variable(model) && model.text() == object &&
                 !program.callee(call) && !program.class_of_call(call);
        }))
      return true;
  }
  return false;
}

// loss_scaler(loss, optimizer, update_grad=(i + 1) % accumulation == 0): the object that passes
// back steps now and then.
void check_steps_of_scalers(const Program& program, Report& report) {
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref told = backward.keyword("update_grad");
      const Ref passes = told ? passes_of_remainder(program, told) : Ref{};
      if (!passes || is_always_one(program, passes)) continue;
      Finding& finding = report.at(told, Confidence::likely, std::string(kWasted));
      tell_if_one(program, passes, finding);
      finding.help = kUnderNoSync;
    }
}

}  // namespace

void check_accumulation_without_no_sync(const Program& program, Report& report) {
  if (synchronises_by_hand(program)) return;
  const bool prepared = accelerate_wraps(program);
  const auto& all = program.training_loops();
  if (!prepared &&
      (program.framework_distributes() ||
       (!program.has_ddp() && std::none_of(all.begin(), all.end(), [&](const TrainingLoop& loop) {
         return trains_unseen_wrapper(program, loop);
       }))))
    return;
  if (!prepared) check_steps_of_scalers(program, report);
  std::vector<diagnose::FunctionRef> told;  // each function once
  for (const CallRef& step : steps_of(program)) {
    const diagnose::FunctionRef here = program.enclosing_function(step.ref());
    if (std::find(told.begin(), told.end(), here) != told.end()) continue;
    const Ref receiver = step.receiver();
    if (!receiver || facts::contains(facts::lowered(receiver.text()), "sched")) continue;
    const bool steps_weights = steps_optimizer(program, step);
    const TrainingLoop* loop = facts::training_loop_of(program, step.ref());
    if (!steps_weights) continue;
    const auto& loops = program.training_loops();
    if (std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop& training) {
          return (!prepared || is_routed(program, training)) &&
                 follows_micro_batches(program, training, step);
        })) {
      Finding& finding = report.at(step.ref(), Confidence::likely,
                                   std::string(prepared ? kWastedByAccelerate : kWasted));
      tell_as_note(finding, why_no_ddp(program, prepared));
      finding.help = prepared ? kUnderAccumulate : kUnderNoSync;
      told.push_back(here);
      continue;
    }
    if (loop == nullptr || (prepared && !is_routed(program, *loop))) continue;
    if (!prepared && trains_bare_model(program, *loop, here)) continue;
    for (const Guard& guard : guards_of_step(program, *loop, step)) {
      const Ref passes = passes_to_a_step(program, *loop, guard);
      if (!passes) continue;
      Finding& finding = report.at(guard.condition, Confidence::likely,
                                   std::string(prepared ? kWastedByAccelerate : kWasted));
      tell_if_one(program, passes, finding);
      tell_as_note(finding, why_no_ddp(program, prepared));
      finding.help = prepared ? kUnderAccumulate : kUnderNoSync;
      told.push_back(here);
      break;
    }
  }
}

namespace {

double bytes_in_buckets(const RunEvidence& run) {
  const Json* buckets = run.first("bucket_bytes");
  double bytes = 0;
  if (buckets != nullptr)
    for (const Json& bucket : *buckets) bytes += bucket.get<double>();
  return bytes;
}

double buckets_in(const RunEvidence& run) {
  const Json* buckets = run.first("bucket_bytes");
  return buckets == nullptr ? 0 : static_cast<double>(buckets->size());
}

// How often each bucket was reduced for one optimizer step; 0 where that is not known.
double reductions_per_step(const RunEvidence& run) {
  const double count = buckets_in(run) * run.number("optimizer_steps");
  const double found = run.number("reductions") / count;
  return count > 0 && found >= 0 ? found : 0;
}

}  // namespace

void judge_accumulation_without_no_sync(const RunEvidence& run, RunReport& report) {
  if (!(run.number("micro_batches") > 1) || reductions_per_step(run) <= 1) return;
  Finding& finding = report.add(
      Confidence::certain, "gradients are accumulated over " + figure(run.number("micro_batches")) +
                               " micro-batches and reduced " + figure(reductions_per_step(run)) +
                               " times a step");
  finding.help = "Run all micro-batches but the last under no_sync(), forward and backward.";
  finding.evidence.emplace_back("all-reduces", figure(run.number("reductions")));
  finding.evidence.emplace_back("optimizer steps", figure(run.number("optimizer_steps")));
}

Price price_accumulation_without_no_sync(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const double wasted = reductions_per_step(broken) - reductions_per_step(cured);
  price.reproduced = wasted > 0 && broken.number("gradient_sum") == cured.number("gradient_sum");
  price.gone = reductions_per_step(cured) == 1;
  price.cost = wasted * bytes_in_buckets(broken);
  price.unit = "bytes reduced in vain per step (" + figure(wasted) + " all-reduces of " +
               figure(buckets_in(broken)) + " bucket; the step took " +
               figure(1e3 * broken.number("step_seconds"), 2) + " ms instead of " +
               figure(1e3 * cured.number("step_seconds"), 2) + " ms on loopback)";
  price.seen = "silent, the result is right: " + figure(reductions_per_step(broken)) +
               " all-reduces a step instead of " + figure(reductions_per_step(cured));
  return price;
}

}  // namespace bench::pitfalls
