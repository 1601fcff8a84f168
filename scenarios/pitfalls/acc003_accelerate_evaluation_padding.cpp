#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/cut_by_hand.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

namespace {

// The function hands predictions to a metric, or counts the right ones itself.
bool counts_something(std::string_view function) {
  for (const char* word : {"add_batch(", "correct", "accuracy", "metric"})
    if (facts::contains(function, word)) return true;
  return false;
}

// torch.tensor([correct]) and torch.zeros(1, n): one row of each process, whatever its batch held.
bool is_one_row(const Program& program, Ref value) {
  const auto& sources = program.sources(value);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef made = program.as_call(source.ref);
           if (!made || source.how != diagnose::Source::How::value) return false;
           const std::string_view name = made.call->path;
           const Ref first = made.positional(0);
           if (name == "torch.zeros" || name == "torch.ones" || name == "torch.empty")
             return first.text() == "1" && static_cast<bool>(made.positional(1));
           return name == "torch.tensor" && first.kind() == Kind::list &&
                  first.module->tree().child_count(first.node) == 1;
         });
}

// sum(...) / len(loader), collected over the loop: one number a process, which has no samples left
// that could be cut off.
bool is_sum(const Program& program, Ref value) {
  if (facts::contains(value.text(), "sum(") || is_one_row(program, value)) return true;
  const auto& module = *value.module;
  const auto function = program.enclosing_function(value);
  const auto is_added_to = [&](std::string_view name) {
    const auto& defs = module.defs_of(name, false);
    return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
      const auto& def = module.defs()[index];
      return def.kind == diagnose::DefKind::augmented &&
             program.enclosing_function({&module, def.target}) == function;
    });
  };
  if (is_added_to(value.text())) return true;
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const auto& tree = source.ref.module->tree();
    if (source.ref.module != value.module || source.ref.kind() != diagnose::Kind::binary)
      return false;
    for (diagnose::NodeId at = source.ref.node; at < tree[source.ref.node].last; ++at)
      if (tree[at].kind == diagnose::Kind::identifier && is_added_to(tree.text(at))) return true;
    return false;
  });
}

// for name, loss in losses.items(): what one step gave, and no batches.
bool goes_over_names(Ref loop) {
  const std::string_view over = loop.child(diagnose::Field::right).text();
  return over.ends_with(".items()") || over.ends_with(".keys()") || over.ends_with(".values()");
}

// scores.append(...) in a loop of the same function that stands above the call and is over.
bool is_collected_above(const Program& program, Ref list, Ref use) {
  if (list.kind() != Kind::identifier) return false;
  const auto appends = program.calls_named("append");
  return std::any_of(appends.begin(), appends.end(), [&](const CallRef& append) {
    const Ref loop = program.innermost_loop(append.ref());
    return append.receiver() && program.same_variable(append.receiver(), list) && loop &&
           loop.kind() == Kind::for_statement && !goes_over_names(loop) &&
           loop.module == use.module && loop.module->tree()[loop.node].last <= use.node &&
           !facts::calls_in(loop).empty();
  });
}

// gather_for_metrics(torch.cat(scores)) below the loop over the loader: it drops what was repeated
// in the last batch while the loader is read, and nothing once it is at its end.
void check_metrics_behind_loop(const Program& program, Report& report) {
  if (program.calls_named("prepare").empty()) return;
  for (const CallRef& gather : program.calls_named("gather_for_metrics")) {
    const Ref value = gather.positional(0);
    const CallRef joined = value ? program.made_by(value) : CallRef{};
    const bool joins = joined && (joined.call->name == "cat" || joined.call->name == "concat" ||
                                  joined.call->name == "stack");
    const Ref list = joins ? joined.positional(0) : value;
    if (!list || program.innermost_loop(gather.ref()) ||
        !is_collected_above(program, list, gather.ref()))
      continue;
    report
        .at(gather.ref(), Confidence::likely,
            "gather_for_metrics behind the loop over the loader drops nothing: the samples that "
            "were repeated to make the last batches equal count twice in the metric")
        .help = "Call it in the loop, on the outputs of each batch.";
  }
}

// correct += ..., total += ... in a loop over batches that stands above the call and is over; a sum
// of losses, for which a repeated sample hardly matters, is none, nor what is gathered there.
bool is_total_of_evaluation(const Program& program, Ref value) {
  if (facts::contains(facts::lowered(value.text()), "loss")) return false;
  const VariableNames names = variables_in(value);
  const diagnose::Module& module = *value.module;
  return std::any_of(module.loops().begin(), module.loops().end(), [&](diagnose::NodeId node) {
    const Ref loop{&module, node};
    if (loop.kind() != Kind::for_statement || module.tree()[node].last > value.node ||
        program.enclosing_function(loop) != program.enclosing_function(value) ||
        !program.is_evaluation(loop) || facts::contains(loop.text(), "gather") ||
        facts::contains(loop.text(), "backward("))
      return false;
    const auto added = additions_in(loop);
    return std::any_of(added.begin(), added.end(), [&](const Assigned& addition) {
      return names.contains(addition.name) &&
             program.innermost_loop({&module, addition.target}) == loop &&
             program.as_call({&module, addition.target}).call == nullptr;
    });
  });
}

// gather_for_metrics(torch.tensor(correct)) below the loop: the repeated samples are in the sum.
void check_totals_behind_loop(const Program& program, Report& report) {
  if (program.calls_named("prepare").empty()) return;
  diagnose::FunctionRef told;
  for (const CallRef& gather : program.calls_named("gather_for_metrics")) {
    const Ref value = gather.positional(0);
    const auto function = program.enclosing_function(gather.ref());
    if (!value || !function || function == told || program.innermost_loop(gather.ref()) ||
        !is_total_of_evaluation(program, value))
      continue;
    told = function;
    report
        .at(gather.ref(), Confidence::likely,
            "gather_for_metrics of a total drops nothing: the samples that were repeated to make "
            "the last batches equal are counted in it already")
        .help = "Call it in the loop, on the outputs of each batch, and count what it returns.";
  }
}

// loss.repeat(batch_size), here or where the value has its name.
bool is_of_samples(const Program& program, Ref value) {
  const CallRef made = program.made_by(value);
  return made && (made.call->name == "repeat" || made.call->name == "expand");
}

// metric.add_batch(predictions=gathered): scores that are computed of it.
bool goes_to_metric(const Program& program, const CallRef& gather) {
  const std::string name(program.assigned_name(gather.ref()));
  const auto holds = [&](Ref value) {
    return gather.module->tree().contains(value.node, gather.call->node) ||
           (!name.empty() && variables_in(value).contains(name));
  };
  for (const std::string_view method : {"add_batch", "compute"})
    for (const CallRef& call : program.calls_named(method))
      for (const std::string_view given : {"predictions", "references"})
        if (const Ref value = call.keyword(given);
            value && call.module == gather.module &&
            gather.module->tree()[call.call->node].last > gather.call->node &&
            program.enclosing_function(call.ref()) == program.enclosing_function(gather.ref()) &&
            holds(value))
          return true;
  return false;
}

// images.append(gathered), and np.concatenate(images)[:args.total] below: as many as were asked
// for.
bool is_cut_below(const Program& program, const CallRef& gather) {
  const auto& tree = gather.module->tree();
  const auto function = program.enclosing_function(gather.ref());
  for (const diagnose::NodeId node : gather.module->nodes_of(Kind::subscript)) {
    const Ref cut{gather.module, node};
    const CallRef joined = program.made_by(cut.child(diagnose::Field::value));
    if (node < gather.call->node || !joined || !facts::contains(joined.call->name, "cat") ||
        !tree.text(node).ends_with("]") || program.enclosing_function(cut) != function)
      continue;
    const Ref slice = cut.child(diagnose::Field::subscript);
    // [:, 1] picks a column.
    if (!slice || !slice.text().starts_with(":") || slice.text().starts_with(":-") ||
        slice.text() == ":" || slice.text().starts_with(":,"))
      continue;
    const std::string name(program.assigned_name(gather.ref()));
    const auto appends = program.calls_named("append");
    if (std::any_of(appends.begin(), appends.end(), [&](const CallRef& append) {
          return append.module == gather.module && append.receiver() &&
                 append.receiver().text() == joined.positional(0).text() &&
                 program.enclosing_function(append.ref()) == function &&
                 (tree.contains(append.call->node, gather.call->node) ||
                  (!name.empty() && variables_in(append.positional(0)).contains(name)));
        }))
      return true;
  }
  return false;
}

// errors.append(accelerator.gather(error)), and torch.cat(errors).mean() below; each also by a
// name.
bool is_averaged(const Program& program, const CallRef& gather) {
  const auto& tree = gather.module->tree();
  const std::string name(program.assigned_name(gather.ref()));
  const auto appends = program.calls_named("append");
  return std::any_of(appends.begin(), appends.end(), [&](const CallRef& append) {
    if (append.module != gather.module || !append.receiver() ||
        program.enclosing_function(append.ref()) != program.enclosing_function(gather.ref()) ||
        !(tree.contains(append.call->node, gather.call->node) ||
          (!name.empty() && variables_in(append.positional(0)).contains(name))))
      return false;
    const auto assignments = assignments_in(body_around(program, append.ref()));
    const auto means = program.calls_named("mean");
    return std::any_of(means.begin(), means.end(), [&](const CallRef& mean) {
      return mean.module == gather.module && mean.call->node > append.call->node &&
             program.enclosing_function(mean.ref()) == program.enclosing_function(append.ref()) &&
             meet(behind(variables_in(mean.ref()), assignments), variables_in(append.receiver()));
    });
  });
}

// accelerator.gather(loss).mean() and torch.mean(accelerator.gather(loss)).
bool is_averaged_at_once(const Program& program, const CallRef& gather) {
  const auto& tree = gather.module->tree();
  const auto means = program.calls_named("mean");
  return std::any_of(means.begin(), means.end(), [&](const CallRef& mean) {
    return mean.module == gather.module && mean.call->node < gather.call->node &&
           tree.contains(mean.call->node, gather.call->node) &&
           (mean.receiver() == gather.ref() || mean.positional(0) == gather.ref());
  });
}

// loss, accuracy = model(batch): may be one number of the process, of which nothing can be cut.
bool is_part_of_output(const Program& program, Ref value) {
  const auto& sources = program.sources(value);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           return source.how == diagnose::Source::How::element && program.as_call(source.ref);
         });
}

// prepare(loader) of loaders that all drop their last batch: Accelerate gives out complete rounds
// alone, a batch for each process.
bool prepares_complete_rounds(const Program& program) {
  bool any = false;
  for (const CallRef& prepare : program.calls_named("prepare"))
    for (const Ref given : facts::arguments_of(prepare)) {
      const CallRef loader = program.origin(given, Api::data_loader);
      if (loader && !program.is_literal_true(loader.keyword("drop_last"))) return false;
      if (!loader && says_any(given.text(), {"loader", "data", "dl", "val", "test", "eval", "iter",
                                             "batch", "*"}))
        return false;
      any = any || loader;
    }
  return any;
}

void check_uneven_batches(const Program& program, Report& report) {
  for (const CallRef& made : program.calls(Api::accelerator)) {
    const Ref even = made.keyword("even_batches");
    if (even && program.is_literal_false(even) &&
        program.calls_named("join_uneven_inputs").empty() && !prepares_complete_rounds(program))
      report
          .at(even, Confidence::likely,
              "even_batches=False without join_uneven_inputs: the job hangs at the end of an epoch")
          .help = "Train under accelerator.join_uneven_inputs([model]).";
  }
}

}  // namespace

void check_accelerate_evaluation_padding(const Program& program, Report& report) {
  if (!program.uses(Api::accelerator) && program.calls_named("gather_for_metrics").empty()) return;
  check_metrics_behind_loop(program, report);
  check_totals_behind_loop(program, report);
  if (!program.uses(Api::accelerator)) return;
  const std::string_view accelerator =
      program.assigned_name(program.calls(Api::accelerator).front().ref());
  for (const CallRef& gather : program.calls_named("gather")) {
    if (!gather.receiver() ||
        (gather.receiver().text() != accelerator && !is_of_accelerator(program, gather)))
      continue;
    const Ref value = gather.positional(0);
    const auto function = program.enclosing_function(gather.ref());
    if (function && function.function->name.starts_with("test_") &&
        !program.under_no_grad(gather.ref()))
      continue;  // a unit test
    // Losses are averaged, for which a repeated sample hardly matters; predictions are counted, and
    // so is a loss that stands once for each sample.
    if (!value ||
        (facts::contains(facts::lowered(value.text()), "loss") && !is_of_samples(program, value)) ||
        (!program.is_evaluation(gather.ref()) && !goes_to_metric(program, gather)) ||
        facts::training_loop_of(program, gather.ref()) != nullptr || is_sum(program, value))
      continue;
    // gather(samples)[:n] keeps as many as were asked for.
    const auto& tree = gather.module->tree();
    const auto parent = tree[gather.call->node].parent;
    if (tree[parent].kind == diagnose::Kind::subscript) continue;
    const auto& module = *gather.module;
    if (cuts_repeated_samples(program, gather) || is_cut_below(program, gather)) continue;
    Finding& finding = report.at(
        gather.ref(), Confidence::likely,
        "gather keeps the samples that were repeated to make the last batches equal: they "
        "count twice in the metric");
    if (!counts_something(module.text(module.function_of(gather.call->node))) &&
        !is_averaged(program, gather) &&
        !(is_averaged_at_once(program, gather) && is_of_samples(program, value)))
      tell_as_note(finding);
    else if (is_averaged_at_once(program, gather) && is_part_of_output(program, value))
      tell_as_note(finding, "what the model returns may be a mean already, one of each process");
    finding.help = "Use accelerator.gather_for_metrics.";
  }
  check_uneven_batches(program, report);
}

}  // namespace bench::pitfalls
