#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/accelerate_accumulation.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/raw_loader.hpp"
#include "scenarios/pitfalls/frameworks/unprepared_models.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;
using diagnose::TrainingLoop;

namespace {

// self.model, self.loader = accelerator.prepare(model, loader), for all methods of the class.
bool is_kept_by_object(const CallRef& made) {
  const Ref node = made.ref();
  const Ref parent = node.with((*node.module)[node.node].parent);
  return parent.kind() == Kind::assignment &&
         facts::contains(parent.child(diagnose::Field::left).text(), "self.");
}

// The Accelerator is made where the step runs, in a caller, or for the whole file or object. A
// function that has none beside one that does is a comparison, not a mistake.
bool is_in_use(const Program& program, Ref node, const CallRef& made, int depth = 0) {
  constexpr int kCalls = 4;
  if (only_runs_before(program, node, made.ref())) return false;  // made for what comes afterwards
  const auto maker = program.enclosing_function(made.ref());
  if (!maker || program.assigned_name(made.ref()).find('.') != std::string_view::npos) return true;
  if (node.module == maker.module && node.module->tree().contains(maker.function->node, node.node))
    return true;
  if (is_kept_by_object(made) && program.enclosing_class(node) &&
      program.enclosing_class(node) == program.enclosing_class(made.ref()))
    return true;
  if (depth > kCalls) return false;
  // model, loader = build(): what the maker gives back is used where it is called.
  for (const CallRef& site : program.call_sites(maker))
    if (!maker.function->returns.empty() && is_in_use(program, node, site, depth + 1)) return true;
  const auto function = program.enclosing_function(node);
  if (!function) return false;
  for (const CallRef& site : program.call_sites(function))
    if (is_in_use(program, site.ref(), made, depth + 1)) return true;
  return false;
}

// What prepare() returned is trained here; in a program without prepare(), the Accelerator is near.
bool routes_here(const Program& program, Ref node, const CallRef& made) {
  const auto prepares = program.calls_named("prepare");
  if (prepares.empty()) return is_in_use(program, node, made);
  return std::any_of(prepares.begin(), prepares.end(),
                     [&](const CallRef& prepare) { return is_in_use(program, node, prepare); });
}

// The data set picks its own part by the rank of the process: `idx % accelerator.num_processes`; or
// a sampler of the program's own does.
bool is_split_by_hand(const Program& program, const CallRef& loader) {
  const Ref dataset = loader.argument(0, "dataset");
  if (!dataset) return false;
  const auto tells_ranks = [](std::string_view text) {
    return facts::contains(text, "process_index") || facts::contains(text, "get_rank(") ||
           facts::contains(text, "split_dataset_by_node");
  };
  const diagnose::ClassRef cls = program.class_of(dataset);
  if (cls && tells_ranks(cls.module->text(cls.cls->node))) return true;
  const auto is_told = [&](Ref part) {
    const auto calls = part ? facts::calls_behind(program, part) : std::vector<Ref>{};
    return std::any_of(calls.begin(), calls.end(),
                       [&](const Ref& call) { return tells_ranks(call.text()); });
  };
  return is_told(dataset) || is_told(loader.keyword("sampler")) ||
         is_told(loader.keyword("batch_sampler"));
}

// buffer.append(rollout) in a loop: the data set is filled by each process with what it made.
bool is_filled_here(const Program& program, const CallRef& loader) {
  const Ref dataset = loader.argument(0, "dataset");
  if (!diagnose::stands_for_object(dataset)) return false;
  for (const std::string_view method : {"append", "extend", "add", "push", "put", "store"})
    for (const CallRef& call : program.calls_named(method))
      if (call.module == loader.module && call.receiver().text() == dataset.text() &&
          program.enclosing_function(call.ref()) == program.enclosing_function(loader.ref()) &&
          !program.loops_around(call.ref()).empty() && !program.loops_around(loader.ref()).empty())
        return true;
  return false;
}

// make(config, accelerator=accelerator): it may prepare what it makes.
bool is_told_accelerator(const CallRef& maker) {
  return maker && says_any(maker.ref().child(diagnose::Field::arguments).text(), {"accelerator"});
}

bool is_named_like_loader(Ref argument) {
  return says_any(argument.text(), {"load", "data", "dl", "iter", "train", "val", "test", "batch"});
}

bool is_same(const Source& a, const Source& b) { return a.ref == b.ref && a.element == b.element; }

// Two results of one call, or of two calls of the same function.
bool are_siblings(const Program& program, const Source& a, const Source& b) {
  if (a.how == Source::How::element)
    return a.ref == b.ref && b.how == Source::How::element && a.element != b.element;
  const CallRef one = program.as_call(a.ref);
  const CallRef other = program.as_call(b.ref);
  return a.how == Source::How::value && b.how == Source::How::value && one && other &&
         a.ref != b.ref && one.call->name == other.call->name &&
         says_any(one.call->name, {"load", "data"});
}

// train_loader, val_loader = make(config) of a file that is not at hand, or one call for each: one
// is prepared, and the loop reads the other.
CallRef preparation_of_sibling(const Program& program, Ref iterable) {
  const Ref loader = program.strip_iterable(iterable);
  for (const Source& mine : program.sources(loader)) {
    const CallRef maker = program.as_call(mine.ref);
    if (!maker || maker.call->api != Api::none || program.callee(maker) ||
        program.class_of_call(maker) || is_told_accelerator(maker))
      continue;
    CallRef sibling;
    for (const CallRef& prepare : program.calls_named("prepare"))
      for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i) {
        if (!is_variable(argument) || argument.text() == loader.text()) return {};
        for (const Source& other : program.sources(argument)) {
          if (is_same(mine, other)) return {};
          if (are_siblings(program, mine, other) && is_named_like_loader(argument))
            sibling = prepare;
        }
      }
    if (sibling) return sibling;
  }
  return {};
}

void check_sibling_of_prepared(const Program& program, Ref iterable, Report& report) {
  const CallRef prepare = preparation_of_sibling(program, iterable);
  if (!prepare) return;
  report
      .at(prepare.ref(), Confidence::likely,
          "the loader beside the training loader is passed to accelerator.prepare(), the training "
          "loader is not: every process reads all the data")
      .help = "Pass it to prepare() with the model and the optimizer.";
}

// The loader that the loop goes over is not what prepare() returned.
void check_raw_loader(const Program& program, const TrainingLoop& loop, Report& report) {
  const auto [prepare, unknown] = raw_loader_of(program, loop);
  if (!prepare) return;
  Finding& finding = report.at(
      prepare.ref(), Confidence::likely,
      unknown ? "accelerator.prepare() is passed '" + std::string(unknown.text()) +
                    "', which has no value yet, and not the loader of the training loop"
              : "the training loop goes over the loader that was passed to accelerator.prepare(), "
                "not over what it returned: every process reads all the data");
  finding.help = unknown ? "Pass the loader of the loop." : "Go over what prepare() returned.";
}

// accelerator.unscale_gradients(optimizer) above, which accelerator.clip_grad_norm_ calls itself.
bool is_unscaled_above(const Program& program, const CallRef& clip) {
  const auto calls = program.calls_named("unscale_gradients");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& unscale) {
    return program.enclosing_function(unscale.ref()) == program.enclosing_function(clip.ref()) &&
           program.runs_before(unscale.ref(), clip.ref());
  });
}

// The program says nowhere which process it is, nor draws at random.
bool is_the_same_everywhere(const Program& program) {
  for (const std::string_view word :
       {"process_index", "num_processes", "split_between_processes", "get_rank", "RANK",
        "local_rank", "world_size", "split_dataset_by_node", "shuffle", "random.", "randint",
        "randperm"})
    if (program.mentions(word)) return false;
  return true;
}

bool counts_up_in(const Program& program, Ref loop, Ref count) {
  const auto& module = *loop.module;
  const auto values = values_of(program, count);
  return std::any_of(values.begin(), values.end(), [&](const diagnose::Def* def) {
    const bool counts = def->kind == diagnose::DefKind::augmented ||
                        (def->kind == diagnose::DefKind::loop && def->value != diagnose::kNoNode &&
                         module.text(def->value).starts_with("range("));
    return counts && module.tree().contains(loop.node, def->target);
  });
}

bool is_length_of(const Program& program, Ref count, Ref list) {
  const auto& sources = program.sources(count);
  const CallRef length = sources.size() == 1 ? program.as_call(sources.front().ref) : CallRef{};
  return length && length.call->name == "len" && program.same_variable(length.positional(0), list);
}

// samples[step % len(samples)], also through a name for the index.
bool goes_round_by_step(const Program& program, Ref loop, Ref item) {
  const Ref list = item.child(diagnose::Field::value);
  const auto& indices = program.sources(item.child(diagnose::Field::subscript));
  if (!is_variable(list) || indices.size() != 1) return false;
  const Ref index = indices.front().ref;
  return index.kind() == Kind::binary && (*index.module)[index.node].op == diagnose::Op::modulo &&
         counts_up_in(program, loop, index.child(diagnose::Field::left)) &&
         is_length_of(program, index.child(diagnose::Field::right), list);
}

// No loader at all: the step says which sample comes next, and is the same in every process.
void check_samples_by_step(const Program& program, const TrainingLoop& loop, Report& report) {
  const Ref body = loop.batches;
  if (loop.iterable || !accelerate_wraps(program) || !is_the_same_everywhere(program)) return;
  for (const diagnose::NodeId node : body.module->nodes_of(Kind::subscript)) {
    const Ref item = body.with(node);
    if (!body.module->tree().contains(body.node, node) || program.under_no_grad(item) ||
        !goes_round_by_step(program, body, item))
      continue;
    report
        .at(item, Confidence::likely,
            "the step picks the sample, and is the same in every process: all of them train on the "
            "same samples")
        .help = "Make a DataLoader and pass it to accelerator.prepare().";
    return;
  }
}

bool is_given(const CallRef& prepare, std::string_view name) {
  for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
    if (argument.text() == name) return true;
  return false;
}

// Some prepare() that runs with this one is given the name.
bool is_given_beside(const Program& program, const CallRef& prepare, std::string_view name) {
  const auto prepares = program.calls_named("prepare");
  return std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& other) {
    return is_given(other, name) && !facts::exclusive(other.ref(), prepare.ref());
  });
}

bool is_used_in(Ref branch, std::string_view name) {
  const auto& tree = branch.module->tree();
  for (auto at = branch.node; at < tree[branch.node].last; ++at)
    if (tree[at].kind == Kind::identifier && tree.text(at) == name) return true;
  return false;
}

// The widest part of the program that holds the node and not the other one.
Ref branch_of(Ref node, Ref other) {
  const auto& tree = node.module->tree();
  auto at = node.node;
  while (tree[at].parent != diagnose::kNoNode && !tree.contains(tree[at].parent, other.node))
    at = tree[at].parent;
  return node.with(at);
}

// The loop below both branches goes over the name, in the runs of either.
bool is_read_below(const Program& program, const CallRef& prepare, Ref name) {
  const auto& module = *prepare.module;
  for (const diagnose::NodeId node : module.loops()) {
    const Ref loop{&module, node};
    if (loop.kind() != Kind::for_statement || node < prepare.call->node ||
        program.enclosing_function(loop) != program.enclosing_function(prepare.ref()) ||
        facts::exclusive(loop, prepare.ref()) || is_evaluation_loop(program, loop) ||
        program.under_no_grad(loop))
      continue;
    if (program.strip_iterable(loop.child(diagnose::Field::right)).text() == name.text())
      return true;
  }
  return false;
}

// if first_stage: net, loader = prepare(net, loader); else: net = prepare(net): below, the loop
// over the loader reads all of it in the runs of the second branch.
void check_prepared_in_one_branch(const Program& program, Report& report) {
  const auto prepares = program.calls_named("prepare");
  for (const CallRef& whole : prepares)
    for (const CallRef& part : prepares) {
      if (whole.module != part.module || whole.call == part.call ||
          !is_of_accelerator(program, whole) || !is_of_accelerator(program, part) ||
          whole.has_splat() || part.has_splat() || !facts::exclusive(whole.ref(), part.ref()))
        continue;
      for (std::size_t i = 0; const Ref argument = prepared_by(whole, i); ++i) {
        if (argument.kind() != Kind::identifier ||
            is_given_beside(program, part, argument.text()) ||
            !program.comes_from(argument, Api::data_loader))
          continue;
        const Ref branch = branch_of(part.ref(), whole.ref());
        const CallRef loader = program.origin(argument, Api::data_loader);
        if (is_used_in(branch, argument.text()) || !is_read_below(program, part, argument) ||
            is_evaluation_loader(program, loader) || is_split_by_hand(program, loader))
          continue;
        report
            .at(part.ref(), Confidence::likely,
                "the other branch passes the training loader to accelerator.prepare(), this one "
                "does not: here every process reads all the data")
            .help = "Pass it to prepare() in both branches.";
        return;
      }
    }
}

// What prepare() is passed may be the loader of the loop: a list of everything, what a call gives
// back, and attributes but for those that have names of other things (self.model).
bool may_be_loader(Ref argument, const TrainingLoop& loop) {
  if (argument.kind() == Kind::identifier) return false;
  return argument.kind() != Kind::attribute || argument.text() == loop.iterable.text() ||
         says_any(argument.text(), {"load", "data", "dl", "iter", "batch", "train"});
}

// prepare(*objects): the list has what may be the loader of the loop, or is made out of sight under
// a name that leaves it open.
bool may_unpack_loader(const Program& program, const CallRef& prepare, const TrainingLoop& loop) {
  const Ref arguments = prepare.ref().child(diagnose::Field::arguments);
  const auto& tree = arguments.module->tree();
  for (auto at = tree[arguments.node].first_child; at != diagnose::kNoNode;
       at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::list_splat) continue;
    const Ref list = arguments.with(tree[at].first_child);
    const auto& sources = program.sources(list);
    const bool is_written =
        !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const Source& source) {
          return source.ref.kind() == Kind::list || source.ref.kind() == Kind::tuple;
        });
    if (!is_written) {
      if (!says_any(list.text(), {"model", "ema", "net", "optim", "sched"})) return true;
      continue;
    }
    for (const Source& source : sources)
      for (auto each = source.ref.module->tree()[source.ref.node].first_child;
           each != diagnose::kNoNode; each = source.ref.module->tree()[each].next_sibling)
        if (const Ref item = source.ref.with(each);
            is_named_like_loader(item) || program.comes_from(item, Api::data_loader) ||
            (item.kind() == Kind::attribute && may_be_loader(item, loop)))
          return true;
  }
  return false;
}

// The function gets its optimizer itself and prepares nothing: a baseline beside the run that
// Accelerate makes.
bool is_baseline(const Program& program, const TrainingLoop& loop) {
  if (!loop.function) return false;
  const Ref body{loop.function.module, loop.function.function->body};
  const auto prepares_optimizer = [&](const CallRef& call) {
    if (!diagnose::is_prepare(call.call->name)) return false;
    if (call.has_splat()) return true;
    for (std::size_t i = 0; const Ref argument = prepared_by(call, i); ++i)
      if (program.comes_from(argument, Api::optimizer)) return true;
    return false;
  };
  if (program.subtree_calls(body, prepares_optimizer)) return false;
  const auto assigned = assignments_in(body);
  const auto calls = facts::calls_in(loop.batches);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& step) {
    return step.call->name == "step" && program.comes_from(step.receiver(), Api::optimizer) &&
           std::any_of(assigned.begin(), assigned.end(),
                       [&](const Assigned& each) { return each.name == step.receiver().text(); });
  });
}

// if accelerator is not None: accelerator.backward(loss) else: loss.backward()
bool is_routed_beside(const TrainingLoop& loop, const CallRef& backward) {
  return std::any_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& other) {
    return other.positional(0) && facts::exclusive(backward.ref(), other.ref());
  });
}

// (loss / steps).backward() beside Accelerator(): the script divides itself, and nothing in sight
// scales or accumulates.
std::string why_it_is_the_same(const Program& program, const CallRef& made,
                               const CallRef& backward) {
  const Ref loss = backward.receiver();
  const bool divides =
      loss.kind() == Kind::binary && (*loss.module)[loss.node].op == diagnose::Op::divide;
  if (!divides || made.has_splat() || program.calls(Api::accelerator).size() > 1) return {};
  for (const diagnose::Argument& argument : made.module->arguments(made.call->node))
    if (says_any(argument.name, {"precision", "fp16", "accumulation", "plugin"})) return {};
  return "the loss is divided here, and this Accelerator neither scales nor accumulates unless a "
         "launch or a config says so";
}

}  // namespace

void check_accelerate_step_not_routed(const Program& program, Report& report) {
  check_prepared_in_one_branch(program, report);
  if (!program.uses(Api::accelerator)) return;
  const CallRef made = program.calls(Api::accelerator).front();
  const std::string_view accelerator = program.assigned_name(made.ref());
  for (const TrainingLoop& loop : program.training_loops()) {
    for (const CallRef& backward : loop.backwards) {
      if (backward.positional(0) || !backward.receiver() ||
          !routes_here(program, backward.ref(), made) || is_baseline(program, loop))
        continue;
      const std::string_view receiver = backward.receiver().text();
      if (receiver == accelerator || facts::contains(receiver, "accelerator") ||
          facts::contains(receiver, "scale(") || is_routed_beside(loop, backward))
        continue;
      Finding& finding = report.at(backward.ref(), Confidence::certain,
                                   "loss.backward() goes round Accelerate: no loss scaling and no "
                                   "division for accumulation");
      finding.help = "Call accelerator.backward(loss).";
      tell_as_note(finding, why_it_is_the_same(program, made, backward));
      const auto maker = program.enclosing_function(made.ref());
      if (!accelerator.empty() && accelerator.find('.') == std::string_view::npos &&
          (!maker || maker == program.enclosing_function(backward.ref())))
        replace(backward.ref(),
                std::string(accelerator) + ".backward(" + std::string(receiver) + ")",
                "Route it through Accelerate", finding);
    }
    // A loop beside it whose backward pass is PyTorch's own is no business of Accelerate.
    const bool steps_with_it =
        std::any_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& backward) {
          return backward.positional(0) || routes_here(program, backward.ref(), made);
        });
    if (steps_with_it) check_sibling_of_prepared(program, loop.iterable, report);
    if (steps_with_it) check_raw_loader(program, loop, report);
    if (steps_with_it) check_samples_by_step(program, loop, report);
    if (steps_with_it && !program.calls_named("prepare").empty())
      for (const CallRef& loader : loaders_of(program, loop.iterable)) {
        const std::string_view name = program.assigned_name(loader.ref());
        bool prepared = false;
        for (const char* method : {"prepare", "prepare_data_loader"})
          for (const CallRef& prepare : program.calls_named(method)) {
            prepared = prepared || may_unpack_loader(program, prepare, loop);
            for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i) {
              prepared = prepared || argument.text() == name || may_be_loader(argument, loop);
              for (const Source& source : program.sources(argument))
                prepared = prepared || source.ref == loader.ref() ||
                           (name.empty() && source.how != Source::How::value);
            }
          }
        if (prepared || is_split_by_hand(program, loader) || is_filled_here(program, loader))
          continue;
        report
            .at(loader.ref(), Confidence::likely,
                "the training loader is not passed to accelerator.prepare(): every process reads "
                "all the data")
            .help = "Pass it to prepare() with the model and the optimizer.";
      }
  }
  check_unprepared_model(program, report);
  check_accumulation(program, made, report);
  check_untold_accumulation(program, made, report);
  check_divided_twice(program, report);
  check_accumulate_around_loop(program, report);
  for (const CallRef& clip : program.calls(Api::clip_grad))
    if (program.string(made.keyword("mixed_precision")).value_or("") == "fp16" &&
        !is_unscaled_above(program, clip))
      report
          .at(clip.ref(), Confidence::likely,
              "gradients are clipped while they are scaled for fp16")
          .help = "Call accelerator.clip_grad_norm_.";
}

}  // namespace bench::pitfalls
