#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/hand_split.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"

#include <algorithm>
#include <set>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;

namespace {

bool speaks_of_seed(std::string_view name) { return facts::contains(facts::lowered(name), "seed"); }

// np.random.seed(0), or a helper of another file: scikit-learn and Hugging Face's datasets draw
// from NumPy's generator, which torch.manual_seed leaves alone.
bool seeds_numpy(const Program& program) {
  for (const CallRef& seed : program.calls_named("seed"))
    if (!program.callee(seed) && seed.call->path != "random.seed") return true;
  const auto calls = program.calls_that(speaks_of_seed);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const std::string_view name = call.call->name;
    return name != "seed" && !facts::contains(name, "manual_seed") && name != "initial_seed" &&
           !program.callee(call);
  });
}

// random.seed(0), or a helper of another file that may.
bool seeds_python(const Program& program) {
  const auto is_of_numpy_or_torch = [](std::string_view name) {
    return name.starts_with("numpy.") || name.starts_with("torch.");
  };
  const auto calls = program.calls_that(speaks_of_seed);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const std::string name = facts::lowered(call.call->name);
    return name != "initial_seed" && !program.callee(call) &&
           !is_of_numpy_or_torch(call.call->path) && !facts::contains(name, "manual_seed");
  });
}

// set_determinism(7) of MONAI, make_deterministic() of a file that is not there, anything(seed=0).
bool makes_reproducible(const diagnose::Module& module, const diagnose::Call& call) {
  const std::string name = facts::lowered(call.name);
  const bool says_so = facts::contains(name, "determinis") || facts::contains(name, "reproduc");
  return (says_so && !name.starts_with("use_")) ||
         (call.api == Api::none && CallRef{&module, &call}.keyword("seed"));
}

// Any call or setting that speaks of a seed: seed_everything(7), workers=True, "seed: 7".
bool seeds_somehow(const Program& program) {
  if (!program.calls_that(speaks_of_seed).empty()) return true;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& call : module->calls())
      if (makes_reproducible(*module, call)) return true;
  return program.mentions("PL_GLOBAL_SEED") || program.mentions("seed_everything") ||
         !program.calls_named("LightningCLI").empty();
}

// The split by hand serves what ranks share out: its function stands with a DistributedSampler, or
// is called beside one.
bool is_for_ranks(const Program& program, const HandSplit& split) {
  return program.uses(Api::distributed_sampler) &&
         !facts::only_before_ranks(program, split.draw.ref()) &&
         !facts::in_dataset(program, split.draw.ref());
}

// random.shuffle(paths), paths[:n] and paths[n:] on every rank, with nothing that seeds it.
void check_hand_splits(const Program& program, bool torch_seeded, bool numpy_seeded,
                       Report& report) {
  for (const HandSplit& split : hand_splits(program)) {
    const bool seeded = split.by == DrawnBy::python  ? seeds_python(program)
                        : split.by == DrawnBy::numpy ? numpy_seeded
                                                     : torch_seeded || numpy_seeded;
    if (seeded || !is_for_ranks(program, split) ||
        program.guarded_by_rank(split.draw.ref()) != RankTest::none)
      continue;
    const std::string whose = torch_seeded || numpy_seeded
                                  ? std::string(" for ") +
                                        (split.by == DrawnBy::python ? "random" : "NumPy") +
                                        ", which draws it"
                                  : "";
    Finding& finding =
        report.at(split.draw.ref(), Confidence::likely,
                  "the split is random and no seed is set" + whose +
                      ": ranks draw different splits, and what one trains on another validates on");
    finding.severity = Severity::warning;
    as_in_trial(finding, "different-split");
    finding.help = "Draw the order from a generator of its own with a fixed seed.";
    return;
  }
}

// dataset.train_test_split(test_size=0.1) of a data set of Hugging Face.
std::vector<CallRef> splits_of_datasets(const Program& program) {
  std::vector<CallRef> out;
  if (!program.imports("datasets")) return out;
  for (const CallRef& split : program.calls_named("train_test_split"))
    if (split.receiver() && split.call->api == Api::none && !program.callee(split) &&
        !split.keyword("generator"))
      out.push_back(split);
  return out;
}

// seed + get_rank() above init_process_group: there is no rank yet. A helper that asks whether
// there is a group says 0 in every process, and without one the call raises.
bool is_above_the_group(const Program& program, const CallRef& seed) {
  const Ref value = seed.positional(0);
  const auto joins = program.calls(Api::init_process_group);
  if (!value || joins.empty() || !std::all_of(joins.begin(), joins.end(), [&](const CallRef& join) {
        return program.runs_before(seed.ref(), join.ref()) &&
               !program.runs_before(join.ref(), seed.ref());
      }))
    return false;
  std::string words;
  for (const diagnose::Source& source : program.sources(value))
    words += facts::lowered(source.ref.text()) + " ";
  bool asks = false;
  for (std::size_t at = words.find("get_rank"); at != std::string::npos;
       at = words.find("get_rank")) {
    words.erase(at, std::string_view("get_rank").size());
    asks = true;
  }
  return asks && !facts::contains(words, "rank");
}

bool differs_between_ranks(const Program& program, const CallRef& seed) {
  const Ref value = seed.positional(0);
  return value && program.comes_from_rank(value) && !is_above_the_group(program, seed);
}

// One process of a node runs it, and the others read what it has written.
bool is_in_prepare_data(const Program& program, Ref node, int depth = 0) {
  constexpr int kCalls = 4;
  const auto function = program.enclosing_function(node);
  if (!function || depth > kCalls) return false;
  if (function.function->name == "prepare_data") return true;
  const auto& sites = program.call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return is_in_prepare_data(program, site.ref(), depth + 1);
  });
}

}  // namespace

void check_rank_seeding(const Program& program, Report& report) {
  const bool prepared = accelerate_wraps(program);
  const bool by_horovod = program.uses(Api::hvd_init);
  const bool by_trainer = has_lightning_ranks(program) || has_trainer_ranks(program);
  if (!prepared && !by_horovod && !by_trainer &&
      (!facts::is_distributed(program) || program.framework_distributes()))
    return;
  bool common = by_trainer && seeds_somehow(program);
  const auto is_deterministic = [](std::string_view name) {
    return facts::contains(facts::lowered(name), "determinis");
  };
  for (const CallRef& call : program.calls_that(is_deterministic))
    common = common || makes_reproducible(*call.module, *call.call);
  bool differs = false;
  for (const Api api : {Api::manual_seed})
    for (const CallRef& seed : program.calls(api))
      (differs_between_ranks(program, seed) ? differs : common) = true;
  for (const std::string_view name : {"seed_everything", "set_seed", "seed", "fix_seed",
                                      "setup_seed", "init_seeds", "set_random_seed", "seed_all"})
    for (const CallRef& seed : program.calls_named(name))
      (differs_between_ranks(program, seed) ? differs : common) = true;
  const auto flag = [&](const CallRef& split, std::string_view argument, bool seeded) {
    // seed=42 + rank of the split itself
    const Ref by_name = split.keyword(argument);
    const Ref given = by_name || argument != "generator" ? by_name : split.positional(2);
    const bool of_rank = given && program.comes_from_rank(given);
    if ((given && !of_rank) || program.is_literal_false(split.keyword("shuffle")) ||
        (seeded && !differs && !of_rank) ||
        program.guarded_by_rank(split.ref()) != RankTest::none ||
        (by_trainer && is_in_prepare_data(program, split.ref())) ||
        ((prepared || by_trainer) && facts::rank_goes_first(program, split.ref())))
      return;
    const std::string whose = common ? " for NumPy, which draws it" : "";
    Finding& finding = report.at(
        split.ref(), Confidence::likely,
        differs || of_rank ? "the split is drawn from a seed that differs between ranks: what one "
                             "rank trains on another validates on"
                           : "the split is random and no seed is set" + whose +
                                 ": ranks draw different splits, and what one trains on another "
                                 "validates on");
    finding.severity = Severity::warning;
    as_in_trial(finding, "different-split");
    finding.help =
        "Pass generator=torch.Generator().manual_seed(0) (random_state=0 for train_test_split).";
  };
  // A helper of another file may seed both.
  const bool by_numpy = seeds_numpy(program);
  for (const CallRef& split : program.calls(Api::random_split))
    flag(split, "generator", common || by_numpy);
  for (const CallRef& split : program.calls(Api::train_test_split))
    flag(split, "random_state", by_numpy);
  for (const CallRef& split : splits_of_datasets(program)) flag(split, "seed", by_numpy);
  check_hand_splits(program, common, by_numpy, report);
}

namespace {

bool equal_on_all_ranks(const RunEvidence& run, std::string_view key) {
  const std::vector<Json> values = run.of_every_rank(key);
  return values.size() > 1 && ranks_agree(values);
}

bool draws_are_equal(const RunEvidence& run) {
  return equal_on_all_ranks(run, "crops_hash") && equal_on_all_ranks(run, "dropout_hash");
}

// Validation samples of some rank that another rank trains on.
std::size_t leaked_samples(const RunEvidence& run) {
  std::set<std::int64_t> trained;
  std::set<std::int64_t> leaked;
  for (const Json& split : run.of_every_rank("train_split"))
    for (const Json& index : split) trained.insert(index.get<std::int64_t>());
  for (const Json& split : run.of_every_rank("validation_split"))
    for (const Json& index : split)
      if (trained.contains(index.get<std::int64_t>())) leaked.insert(index.get<std::int64_t>());
  return leaked.size();
}

constexpr std::string_view kOtherModel = "DDP expects same model across all ranks";

}  // namespace

void judge_rank_seeding(const RunEvidence& run, RunReport& report) {
  if (draws_are_equal(run))
    report
        .add(Confidence::certain, "all ranks draw the same augmentation and the same dropout masks")
        .help = "Seed augmentation with seed + rank, after the model was wrapped.";
  if (const std::size_t leaked = leaked_samples(run); leaked > 0)
    report
        .add(Confidence::certain, std::to_string(leaked) +
                                      " validation samples of one rank are training samples of "
                                      "another")
        .help = "Draw the split from one seed on all ranks.";
  const std::string error = run.error_with(kOtherModel);
  if (error.empty() || !ranks_differ(run, "structure_parameters")) return;
  Finding& finding = report.add(
      Confidence::certain,
      "the ranks built models of " + rank_figures(run, "structure_parameters") + " parameters");
  finding.help = "Draw everything structural from one seed.";
  finding.evidence.emplace_back("error", error);
}

Price price_rank_seeding(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  if (broken.first("crops_hash") != nullptr) {
    price.reproduced = draws_are_equal(broken);
    price.gone = cured.first("crops_hash") != nullptr && !equal_on_all_ranks(cured, "crops_hash") &&
                 !equal_on_all_ranks(cured, "dropout_hash");
    price.cost = 100.0 - 100.0 / static_cast<double>(broken.ranks().size());
    price.unit = "% of the random draws are repetitions";
    price.seen = "silent: the crops of all ranks have the hash " + broken.text("crops_hash");
  } else if (broken.first("validation_split") != nullptr) {
    price.reproduced = leaked_samples(broken) > 0;
    price.gone = cured.first("validation_split") != nullptr && leaked_samples(cured) == 0;
    price.cost = static_cast<double>(leaked_samples(broken));
    price.unit = "validation samples that another rank trains on";
    price.seen = "silent: validation looks better than it is";
  } else {
    const std::string error = broken.error_with(kOtherModel);
    price.reproduced = !error.empty();
    price.gone = cured.first("error") == nullptr && cured.number("wrapped") == 1;
    price.cost = 0;
    price.unit = "steps before the crash";
    price.seen = first_sentence(error);
  }
  return price;
}

}  // namespace bench::pitfalls
