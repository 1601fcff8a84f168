#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/data/node_shares.hpp"
#include "scenarios/pitfalls/data/parts_of_model.hpp"
#include "scenarios/pitfalls/data/rest_of_division.hpp"
#include "scenarios/pitfalls/data/stream_turns.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// for info in share: ... without a backward pass: work that is split, not an epoch.
bool is_worked_off(const Program& program, Ref share) {
  const std::string_view name = program.assigned_name(share);
  for (const NodeId node : share.module->loops()) {
    const Ref loop{share.module, node};
    if (loop.kind() != Kind::for_statement || name.empty() ||
        program.strip_iterable(loop.child(Field::right)).text() != name ||
        program.enclosing_function(loop) != program.enclosing_function(share))
      continue;
    return !program.subtree_calls(
        loop, [](diagnose::CallRef call) { return call.call->name == "backward"; });
  }
  return false;
}

// while True: for batch in loader: ... counts steps, not epochs: a rank that has read its share
// begins again, and all ranks stop at the same step.
bool counts_steps(const Program& program) {
  const auto& loops = program.training_loops();
  return !loops.empty() && std::all_of(loops.begin(), loops.end(), [](const auto& loop) {
    return loop.epochs.kind() == Kind::while_statement ||
           loop.batches.kind() == Kind::while_statement;
  });
}

// A loader without a sampler, which a training loop goes over, reads what the share is made into.
bool feeds_training(const Program& program, Ref share) {
  const auto function = program.enclosing_function(share);
  for (const diagnose::TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || is_evaluation_loader(program, loader)) continue;
      const Ref samples = loader.argument(0, "dataset");
      for (const diagnose::Source& source : program.sources(samples))
        if (source.ref == share) return true;
      const auto calls = facts::calls_behind(program, samples);
      if (function && std::any_of(calls.begin(), calls.end(), [&](Ref call) {
            return program.callee(program.as_call(call)) == function;
          }))
        return true;
    }
  return false;
}

// The loader of a training loop, without a sampler, reads what is made of it.
bool is_read_in_training(const Program& program, const CallRef& made) {
  for (const diagnose::TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || is_evaluation_loader(program, loader)) continue;
      const auto calls = facts::calls_behind(program, loader.argument(0, "dataset"));
      if (std::find(calls.begin(), calls.end(), made.ref()) != calls.end()) return true;
    }
  return false;
}

// for i in range(first, last): ... without a backward pass, below first, last = share.bounds().
bool splits_work(const Program& program, const CallRef& site) {
  const auto& tree = site.module->tree();
  const NodeId given = tree.ancestor(site.call->node, Kind::assignment);
  if (given == kNoNode) return false;
  const VariableNames names = variables_in(site.ref().with(given).child(Field::left));
  bool any = false;
  for (const NodeId node : site.module->loops()) {
    const Ref loop{site.module, node};
    if (loop.kind() != Kind::for_statement ||
        program.enclosing_function(loop) != program.enclosing_function(site.ref()) ||
        !meet(names, variables_in(loop.child(Field::right))))
      continue;
    if (program.subtree_calls(loop, [](CallRef call) { return call.call->name == "backward"; }))
      return false;
    any = true;
  }
  return any;
}

// All that call the function deal out work with what it gives, in which no rank waits for another.
bool gives_work_alone(const Program& program, diagnose::FunctionRef function) {
  const auto& sites = program.call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return splits_work(program, site);
  });
}

void tell_rest_of_division(Ref share, Report& report) {
  as_in_trial(
      report.at(
          share, Confidence::likely,
          "the last rank takes the rest of the division: it gets more samples than the others, "
          "and the last collective of its epoch waits for ranks that are done"),
      "peer-stays")
      .help =
      "Cut all shares to the same length, pad as DistributedSampler does, or train under "
      "`with model.join():`.";
}

void check_rest_of_division(const Program& program, Report& report) {
  std::vector<diagnose::FunctionRef> told;
  const auto is_told = [&](Ref share) {
    const auto function = program.enclosing_function(share);
    if (std::find(told.begin(), told.end(), function) != told.end()) return true;
    told.push_back(function);
    return false;
  };
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::subscript)) {
      const Ref share{module, node};
      if (cuts_with_rest(program, share.child(Field::subscript)) && !program.is_evaluation(share) &&
          feeds_training(program, share) && !is_told(share))
        tell_rest_of_division(share, report);
    }
  // Subset(data, range(start, end))
  for (const std::string_view name : {"range", "arange"})
    for (const CallRef& indices : program.calls_named(name))
      if (indices.positional(1) && !indices.positional(2) &&
          gives_rest_to_last(program, indices.positional(0), indices.positional(1)) &&
          !program.is_evaluation(indices.ref()) && is_read_in_training(program, indices) &&
          !is_told(indices.ref()))
        tell_rest_of_division(indices.ref(), report);
  // return start, end of a method that says which samples a rank reads.
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::return_statement)) {
      const auto& tree = module->tree();
      const Ref bounds{module, tree[node].first_child};
      if (bounds.kind() != Kind::tuple || tree.child_count(bounds.node) != 2 ||
          program.training_loops().empty())
        continue;
      const Ref end = bounds.with(tree.child_at(bounds.node, 1));
      const auto function = program.enclosing_function(bounds);
      if (function &&  // a cell of a notebook may return outside of any
          gives_rest_to_last(program, bounds.with(tree.child_at(bounds.node, 0)), end) &&
          !says_any(function.function->name, {"val", "eval", "test"}) &&
          !gives_work_alone(program, function) && !is_told(bounds))
        tell_rest_of_division(end, report);
    }
}

// mine = val_indices[rank::world_size]: no backward pass waits for anybody in an evaluation.
bool is_for_validation(Ref slice) {
  const NodeId given = slice.module->tree().ancestor(slice.node, Kind::assignment);
  const std::string_view name = slice.with(given).child(Field::left).text();
  for (const std::string_view text : {slice.child(Field::value).text(), name})
    if (says_any(text, {"val_", "_val", "valid", "eval", "test_", "_test"})) return true;
  return false;
}

// The statements that a rank whose turn it is not leaves out train: below the test, or in it.
bool leaves_out_training(const Program& program, Ref test, Ref loop, bool skips) {
  const auto& tree = test.module->tree();
  const auto trains = [](const diagnose::CallRef& call) { return call.call->name == "backward"; };
  if (!skips) return program.subtree_calls(test, trains);
  for (NodeId at = tree[test.node].next_sibling; at != kNoNode; at = tree[at].next_sibling)
    if (program.subtree_calls(loop.with(at), trains)) return true;
  return false;
}

// The loop over batches of a wrapped model, and no other: folds that ranks train on their own, and
// files to write, are dealt out alike.
bool goes_over_batches(const Program& program, Ref loop) {
  const auto& forwards = program.forward_calls();
  return program.strip_iterable(loop.child(Field::right)).text().find("range(") ==
             std::string_view::npos &&
         std::any_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
           return forward.wrap->kind == diagnose::Wrapper::ddp &&
                  !program.under_no_grad(forward.call.ref()) &&
                  program.subtree_calls(loop, [&](const diagnose::CallRef& call) {
                    return call.call == forward.call.call;
                  });
         });
}

// files = files[: len(files) // world_size * world_size], above the loop.
bool is_cut_to_whole_turns(const Program& program, Ref loop) {
  const Ref list = program.strip_iterable(loop.child(Field::right));
  if (list.kind() != Kind::identifier) return facts::contains(list.text(), "world");
  const auto& defs = list.module->defs_of(list.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const auto& def = list.module->defs()[index];
    if (def.value == kNoNode) return false;
    const auto& tree = list.module->tree();
    for (NodeId id = def.value; id < tree[def.value].last; ++id)
      if (program.is_world_size(list.with(id))) return true;
    return false;
  });
}

// for i, x in enumerate(data): if i % world_size != rank: continue, around the steps.
void check_turns_by_index(const Program& program, Report& report) {
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::if_statement)) {
      const Ref test{module, node};
      const Ref condition = test.child(Field::condition);
      const Ref loop = program.innermost_loop(test);
      if (!condition || loop.kind() != Kind::for_statement || !asks_for_turn(program, condition) ||
          program.is_evaluation(test) || !facts::is_reachable(program, test) ||
          program.guarded_by_rank(loop) != diagnose::RankTest::none)
        continue;
      const bool skips = module->tree()[condition.node].op == diagnose::Op::not_equal;
      if (skips && !facts::contains(test.text(), "continue")) continue;
      if (!leaves_out_training(program, test, loop, skips) || !goes_over_batches(program, loop) ||
          is_cut_to_whole_turns(program, loop))
        continue;
      as_in_trial(
          report.at(condition, Confidence::likely,
                    "data is dealt out in turn: ranks get one sample more or less, and the last "
                    "collective of the epoch waits for a rank that is done"),
          "peer-stays")
          .help =
          "Stop all ranks at the smallest share, pad as DistributedSampler does, or train under "
          "`with model.join():`.";
    }
}

// Its length is made a multiple of the number of ranks: len(data) // world_size * world_size.
bool is_cut_to_multiple(const Program& program, Ref length) {
  const auto& sources = program.sources(length);
  return says_any(length.text(), {"total_size", "num_samples", "//", "%"}) ||
         std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
           return holds_any(source.ref.text(), {"//", "%"});
         });
}

// A class of samplers, data sets or loaders, by its bases or its name: it deals out in its own way.
bool is_of_own_kind(const diagnose::ClassRef& cls) {
  return cls && (!cls.cls->bases.empty() || says_any(cls.cls->name, {"sampler", "data", "loader"}));
}

// Subset(data, range(rank, len(data), world_size)), which the training loop's loader reads.
void check_turns_of_subset(const Program& program, Report& report) {
  std::vector<CallRef> all;  // range(...), np.arange(...) and torch.arange(...)
  for (const std::string_view name : {"range", "arange"})
    for (const CallRef& call : program.calls_named(name)) all.push_back(call);
  for (const CallRef& turns : all) {
    const Ref start = turns.positional(0);
    const Ref step = turns.positional(2);
    if (!step || is_of_own_kind(program.enclosing_class(turns.ref())) ||
        !program.is_world_size(step) || !(program.is_rank(start) || program.is_local_rank(start)) ||
        is_cut_to_multiple(program, turns.positional(1)) || program.is_evaluation(turns.ref()) ||
        !is_read_in_training(program, turns))
      continue;
    report
        .at(turns.ref(), Confidence::likely,
            "data is dealt out in turn: ranks get one sample more or less, and the last collective "
            "of the epoch waits for a rank that is done")
        .help =
        "Truncate to the smallest share, pad as DistributedSampler does, or train under "
        "`with model.join():`.";
  }
}

bool is_padded(std::string_view owner) {
  return facts::contains(owner, "total_size") || facts::contains(owner, "num_samples") ||
         facts::contains(owner, "total_samples");
}

// batches = batches + batches[:missing], as DistributedSampler does; not batches[:2], whatever
// their number is.
bool is_filled_up(Ref list, std::string_view owner) {
  const std::string name(list.text());
  for (const std::string_view how : {" + ", " += ", "+", "+=", ".extend("}) {
    const std::string form = name + std::string(how) + name + "[:";
    for (std::size_t at = owner.find(form); at != owner.npos; at = owner.find(form, at + 1)) {
      const std::size_t bound = owner.find_first_not_of(' ', at + form.size());
      if (bound != owner.npos && std::isdigit(static_cast<unsigned char>(owner[bound])) == 0)
        return true;
    }
  }
  return false;
}

// Its name or a base says so: class DistributedBatchSampler(Sampler).
bool is_sampler(const diagnose::ClassRef& cls) {
  const auto& tree = cls.module->tree();
  return facts::contains(cls.cls->name, "Sampler") ||
         std::any_of(cls.cls->bases.begin(), cls.cls->bases.end(),
                     [&](NodeId base) { return facts::contains(tree.text(base), "Sampler"); });
}

// for i in range(self.rank, len(batches), self.world_size): yield batches[i], in a sampler.
void check_turns_of_sampler(const Program& program, Report& report) {
  for (const CallRef& turns : program.calls_named("range")) {
    const Ref start = turns.positional(0);
    const Ref step = turns.positional(2);
    const diagnose::ClassRef cls = program.enclosing_class(turns.ref());
    const diagnose::FunctionRef function = program.enclosing_function(turns.ref());
    if (!start || !step || !cls || !function || function.function->name != "__iter__" ||
        !is_sampler(cls) || says_any(cls.cls->name, {"val", "eval", "test", "infer"}) ||
        !program.is_world_size(step) || !(program.is_rank(start) || program.is_local_rank(start)))
      continue;
    const std::string_view body = function.module->text(function.function->body);
    // batches[: len(batches) // self.world_size * self.world_size]
    if (is_padded(body) || facts::contains(body, "//") || facts::contains(body, "% self."))
      continue;
    as_in_trial(
        report.at(
            turns.ref(), Confidence::likely,
            "data is dealt out in turn: ranks get one item more or less, and the last collective "
            "of the epoch waits for a rank that is done"),
        "peer-stays")
        .help =
        "Truncate to the smallest share, pad as DistributedSampler does, or train under "
        "`with model.join():`.";
  }
}

// wds.DataPipeline(wds.SimpleShardList(urls), wds.split_by_node, ...): each rank reads its shards
// to their end, and nothing makes the numbers of batches equal.
void check_shards_by_node(const Program& program, Report& report) {
  for (const char* word : {"with_epoch", "resampled", "ResampledShards", "wds.repeat",
                           "with_length", "ddp_equalize", "islice"})
    if (program.mentions(word)) return;
  for (const std::string_view maker : {"DataPipeline", "WebDataset"})
    for (const CallRef& made : program.calls_named(maker)) {
      if (says_any(program.assigned_name(made.ref()), {"val", "test", "eval"}) ||
          program.is_evaluation(made.ref()) ||
          facts::contains(statement_of(made.ref()).text(), ".repeat("))
        continue;
      const auto& tree = made.module->tree();
      for (NodeId at = made.call->node; at < tree[made.call->node].last; ++at) {
        if (tree[at].kind != Kind::identifier || tree.text(at) != "split_by_node") continue;
        as_in_trial(
            report.at(
                made.ref().with(at), Confidence::likely,
                "each rank reads the shards that it is dealt to their end: ranks get unequal "
                "numbers of batches, and the last collective of the epoch waits for a rank that is "
                "done"),
            "peer-stays")
            .help =
            "Resample the shards and give every rank the same number of batches with "
            "with_epoch(n), or train under `with model.join():`.";
        return;
      }
    }
}

// data = split_dataset_by_node(data, rank, world_size), read to its end in each epoch.
void check_shares_of_nodes(const Program& program, Report& report) {
  for (const CallRef& split : shares_read_to_end(program))
    as_in_trial(report.at(split.ref(), Confidence::likely,
                          "each rank reads the share that it is dealt to its end: shares may "
                          "differ, and the last collective of the epoch waits for a rank that is "
                          "done"),
                "peer-stays")
        .help = "Give every rank the same number of steps, or train under `with model.join():`.";
}

// if i % world_size != rank: continue in __iter__ of a data set that the training goes over.
void check_turns_of_streams(const Program& program, Report& report) {
  for (const Ref turn : turns_of_streams(program))
    as_in_trial(report.at(turn, Confidence::likely,
                          "the stream is dealt out in turn: ranks get one item more or less, and "
                          "the last collective of the epoch waits for a rank that is done"),
                "peer-stays")
        .help = "Stop all ranks at the smallest share, or train under `with model.join():`.";
}

}  // namespace

void check_uneven_batches_per_rank(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  if (counts_steps(program)) return;
  if (program.mentions("Join(") || program.mentions("model.join(")) return;
  const auto joins = program.calls_named("join");
  if (std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
        return join.receiver() && program.wrap_of(join.receiver()) != nullptr;
      }))
    return;
  check_rest_of_division(program, report);
  check_turns_by_index(program, report);
  check_turns_of_sampler(program, report);
  check_turns_of_subset(program, report);
  check_shards_by_node(program, report);
  check_shares_of_nodes(program, report);
  check_turns_of_streams(program, report);
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::subscript)) {
      const Ref subscript{module, node};
      const auto& tree = module->tree();
      const NodeId slice = tree.child(node, Field::subscript);
      if (slice == kNoNode || tree[slice].kind != Kind::slice || tree.child_count(slice) < 2)
        continue;
      NodeId last = kNoNode;
      for (NodeId at = tree[slice].first_child; at != kNoNode; at = tree[at].next_sibling)
        last = at;
      const Ref start{module, tree[slice].first_child};
      const Ref step{module, last};
      if (!program.is_world_size(step) || !(program.is_rank(start) || program.is_local_rank(start)))
        continue;
      const NodeId owner = module->scope_of(node);
      // Samplers pad to equal counts before they slice.
      if (is_padded(tree.text(owner)) || program.is_evaluation(subscript)) continue;
      if (is_worked_off(program, subscript) || is_for_validation(subscript) ||
          shares_out_model(program, subscript) ||
          is_filled_up(subscript.child(Field::value), tree.text(owner)) ||
          comes_in_whole_turns(program, subscript.child(Field::value)) ||
          ends_with_a_turn(program, subscript.child(Field::subscript)))
        continue;
      as_in_trial(
          report.at(subscript, Confidence::likely,
                    "data is dealt out by slicing: ranks get one sample more or less, and the last "
                    "collective "
                    "of the epoch waits for a rank that is done"),
          "peer-stays")
          .help =
          "Truncate to the smallest share, pad as DistributedSampler does, or train under "
          "`with model.join():`.";
    }
}

namespace {

constexpr std::string_view kClosed = " by peer";  // "Connection closed", or "reset"

// Batches per rank as text, "" where they are equal or not known.
std::string uneven_batches(const RunEvidence& run) {
  const std::vector<Json> batches = run.of_every_rank("batches");
  bool equal = true;
  for (const Json& each : batches) equal = equal && each == batches.front();
  return equal ? std::string() : listed(batches);
}

}  // namespace

void judge_uneven_batches_per_rank(const RunEvidence& run, RunReport& report) {
  const std::string batches = uneven_batches(run);
  const std::vector<int> hung = run.hung_ranks();
  const bool closed = !run.error_with(kClosed).empty();
  if (batches.empty() || (hung.empty() && !closed)) return;
  Finding& finding =
      report.add(Confidence::certain,
                 "the ranks have unequal numbers of batches (" + batches + "): " +
                     (hung.empty() ? "the last collective lost its peer"
                                   : "rank " + std::to_string(hung.front()) +
                                         " waits in a collective that the others never join"));
  finding.help = "Wrap the loop in model.join(), or stop all ranks at the smallest count.";
  finding.evidence.emplace_back("batches per rank", batches);
}

Price price_uneven_batches_per_rank(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::vector<int> hung = broken.hung_ranks();
  const std::string closed = broken.error_with(kClosed);
  price.reproduced = (!hung.empty() || !closed.empty()) && !uneven_batches(broken).empty();
  price.gone =
      cured.hung_ranks().empty() && cured.first("error") == nullptr && cured.number("steps") > 0;
  if (!closed.empty()) {
    price.cost = broken.number("steps");
    price.unit = "steps before the crash";
    price.seen = first_sentence(closed);
    return price;
  }
  price.cost = broken.document().value("limit_seconds", 0.0);
  price.unit = "s hung until the time-out";
  if (!hung.empty())
    price.seen = "nothing is printed: rank " + std::to_string(hung.front()) + " hangs in '" +
                 broken.ranks().at(static_cast<std::size_t>(hung.front())).value("phase", "") +
                 "' until the time-out";
  return price;
}

}  // namespace bench::pitfalls
