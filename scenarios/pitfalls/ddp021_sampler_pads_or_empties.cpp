#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/metrics/padded_metric.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;

namespace {

// Whether it matters depends on the metric: seen where it is added up and reduced.
Finding& tell_padded(const CallRef& sampler, const MetricSum& sum, Report& report) {
  Finding& finding = as_in_trial(
      report.at(sampler.ref(), sum ? Confidence::likely : Confidence::check,
                "the evaluation sampler repeats samples until all ranks have equally many: up to "
                "world size - 1 samples count twice in " +
                    (sum ? "'" + sum.name + "', which the ranks reduce" : "the metric")),
      "pads");
  if (!sum) finding.severity = Severity::info;
  finding.help =
      "Shard without padding and reduce sum and count; or cut gathered results to len(dataset).";
  return finding;
}

// print("... as extra duplicate entries are added to achieve equal num of samples per-process."),
// of DeiT and what was built on it: who uses the script is told.
bool tells_of_it_itself(const Program& program) {
  static constexpr std::string_view kPrints[] = {"print", "info", "warning", "warn"};
  constexpr auto prints = [](std::string_view name) {
    return std::find(std::begin(kPrints), std::end(kPrints), name) != std::end(kPrints);
  };
  const auto calls = program.calls_that(prints);
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return facts::contains(call.ref().text(), "extra duplicate entries are added");
  });
}

void tell_metric(const Program& program, const PaddedMetric& metric, Report& report) {
  Finding& finding = tell_padded(metric.sampler, metric.sum, report);
  if (finding.severity == Severity::info) return;
  if (tells_of_it_itself(program))
    tell_as_note(finding, "the script itself prints so");
  else if (metric.is_loss)
    tell_as_note(finding, "it is a loss, which a sample more or less hardly changes");
  else if (metric.loader && program.is_literal_true(metric.loader.keyword("drop_last")))
    tell_as_note(finding, "the loader leaves out its last batch");
}

// i of `for i, x in enumerate(loader)`, or what the loop counts: seen += len(x).
bool counts_rounds(Ref name, Ref loop) {
  if (name.kind() != Kind::identifier) return false;
  const diagnose::Module& module = *loop.module;
  const auto& defs = module.defs_of(name.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const diagnose::Def& def = module.defs()[index];
    if (def.value == diagnose::kNoNode || !module.tree().contains(loop.node, def.target))
      return false;
    if (def.kind == diagnose::DefKind::augmented) {
      const std::string_view by = module.text(def.value);
      return by == "1" || facts::contains(by, "len(") || facts::contains(by, "size");
    }
    const Ref over = loop.child(Field::right);
    return def.kind == diagnose::DefKind::loop && def.value == over.node &&
           facts::contains(over.text(), "enumerate(") &&
           loop.child(Field::left).text().find(name.text()) <= 1;  // the first name
  });
}

// The number of rounds is less than all of them: not len(loader), and no option that is endless
// where it is not given, or that is for looking for faults.
bool is_below_all(const Program& program, Ref most) {
  const auto says = [](std::string_view text) {
    const std::string plain = facts::lowered(text);
    return facts::contains(plain, "len(") || facts::contains(plain, "inf") ||
           facts::contains(plain, "maxsize") || facts::contains(plain, "debug");
  };
  const auto& sources = program.sources(most);
  return !says(most.text()) &&
         std::none_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           return source.ref.kind() == Kind::none_literal || says(source.ref.text());
         });
}

// Every caller gives a number; where there may be none, all batches are read.
bool is_given_as_number(const Program& program, Ref most) {
  const auto& sources = program.sources(most);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const auto& source) {
    return source.how == diagnose::Source::How::value && source.ref.kind() == Kind::integer;
  });
}

// i >= most, i == 19; most is not None and i >= most
bool is_number_reached(const Program& program, Ref condition, Ref loop) {
  const auto& tree = condition.module->tree();
  if (condition.kind() == Kind::boolean && tree[condition.node].op == diagnose::Op::logical_and) {
    const Ref first = condition.with(tree.child_at(condition.node, 0));
    const bool asks =
        first.kind() == Kind::comparison && tree[first.node].op == diagnose::Op::is_not;
    return asks && is_given_as_number(program, first.with(tree.child_at(first.node, 0))) &&
           is_number_reached(program, condition.with(tree.child_at(condition.node, 1)), loop);
  }
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const auto op = tree[condition.node].op;
  const Ref most = condition.with(tree.child_at(condition.node, 1));
  const bool reaches = op == diagnose::Op::greater || op == diagnose::Op::greater_equal ||
                       (op == diagnose::Op::equal && program.integer(most));
  return reaches && counts_rounds(condition.with(tree.child_at(condition.node, 0)), loop) &&
         is_below_all(program, most);
}

// for i, x in enumerate(loader): if i >= most: break: a figure of the first batches, which the
// repeated samples at the end have no part in. What breaks for a debugging run alone asks more.
bool ends_early(const Program& program, Ref loop) {
  if (!loop) return false;
  const auto& tree = loop.module->tree();
  for (const diagnose::NodeId node : loop.module->nodes_of(Kind::break_statement)) {
    const Ref leaving = loop.with(node);
    if (!tree.contains(loop.node, node) || program.innermost_loop(leaving) != loop) continue;
    const auto guards = program.guards(leaving);
    const auto inside = std::count_if(guards.begin(), guards.end(), [&](const auto& guard) {
      return tree.contains(loop.node, guard.condition.node);
    });
    if (inside == 1 && guards.front().holds &&
        is_number_reached(program, guards.front().condition, loop))
      return true;
  }
  return false;
}

// Wherever the loader is gone over.
bool is_cut_short(const Program& program, const CallRef& loader) {
  bool is_read = false;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Def& def : module->defs()) {
      if (def.kind != diagnose::DefKind::loop || def.value == diagnose::kNoNode) continue;
      const auto& sources = program.sources(program.strip_iterable({module, def.value}));
      if (std::none_of(sources.begin(), sources.end(),
                       [&](const diagnose::Source& source) { return source.ref == loader.ref(); }))
        continue;
      const Ref loop{module, module->tree()[def.value].parent};
      if (loop.kind() != Kind::for_statement || !ends_early(program, loop)) return false;
      is_read = true;
    }
  return is_read;
}

}  // namespace

void check_sampler_pads_or_empties(const Program& program, Report& report) {
  // Horovod and engines of ignite take a sampler as it is.
  const bool leaves_samplers = program.uses(Api::hvd_init) || program.imports("ignite");
  if ((program.framework_distributes() && !leaves_samplers) ||
      program.mentions("gather_for_metrics"))
    return;
  // The program, or a sampler of its own, knows how many samples there are with the repeated ones.
  if (program.mentions("sampler.total_size") || program.mentions("self.total_size")) return;
  std::set<const diagnose::Call*> told;
  for (const PaddedMetric& metric : padded_metrics(program))
    if (!program.is_literal_true(metric.sampler.keyword("drop_last")) &&
        !(metric.sum && ends_early(program, program.innermost_loop(metric.sum.at))) &&
        told.insert(metric.sampler.call).second)
      tell_metric(program, metric, report);
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const CallRef sampler = sampler_of(program, loader);
    if (sampler && is_evaluation_loader(program, loader) &&
        !program.is_literal_true(sampler.keyword("drop_last")) && !told.contains(sampler.call) &&
        !is_cut_short(program, loader) && told.insert(sampler.call).second)
      tell_padded(sampler, {}, report);
  }
}

namespace {

struct EvaluatedSamples {
  std::size_t visits = 0;
  std::set<std::int64_t> distinct;
  std::string twice;  // those that were counted more than once
};

EvaluatedSamples evaluated_samples(const RunEvidence& run) {
  EvaluatedSamples all;
  for (const Json& indices : run.of_every_rank("evaluated")) {
    for (const Json& index : indices) {
      ++all.visits;
      if (!all.distinct.insert(index.get<std::int64_t>()).second)
        all.twice += (all.twice.empty() ? "" : ", ") + index.dump();
    }
  }
  return all;
}

}  // namespace

void judge_sampler_pads_or_empties(const RunEvidence& run, RunReport& report) {
  const double size = run.number("dataset_size");
  const double counted = run.number("counted");
  const EvaluatedSamples samples = evaluated_samples(run);
  if (counted == 0 && size > 0) {
    report.add(Confidence::certain, "no rank has a batch: drop_last left nothing of " +
                                        figure(size) + " samples, and the metric is 0 / 0");
  } else if (counted > static_cast<double>(samples.distinct.size()) && !samples.twice.empty()) {
    Finding& finding = report.add(Confidence::certain,
                                  "the metric counts " + figure(counted) + " samples of a set of " +
                                      figure(size) + ": twice those with indices " + samples.twice);
    finding.help = "Count every sample once: an unpadded shard with all-reduced sums and counts.";
  }
}

Price price_sampler_pads_or_empties(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const double size = broken.number("dataset_size");
  const double counted = broken.number("counted");
  price.reproduced = counted != size;
  price.gone = cured.number("counted") == cured.number("dataset_size");
  price.cost = std::fabs(counted - size);
  if (counted < size) {
    price.unit = "samples never evaluated";
    price.seen = "silent until the division: 0 batches on every rank, the metric is 0 / 0";
    return price;
  }
  price.unit = "samples counted twice";
  price.seen = "silent: accuracy " + figure(broken.number("metric"), 4) + " over " +
               figure(counted) + " samples, really " + figure(cured.number("metric"), 4) +
               " over " + figure(size);
  return price;
}

}  // namespace bench::pitfalls
