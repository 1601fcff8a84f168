#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/launched_with.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Op;

namespace {

// batch_count, last_batch_index, num_batches: how many there are, and which one.
bool counts_batches(std::string_view name) {
  return name.ends_with("index") || name.ends_with("idx") || name.ends_with("count") ||
         name.ends_with("batches") || facts::contains(name, "num_batch");
}

// train_bs, args.bs, bsz: the short words for a batch.
bool has_short_word(std::string_view text) {
  const auto words = words_of_name(text);
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "bs" || word == "bsz"; });
}

bool is_batch(std::string_view text) {
  const std::string plain = facts::lowered(text);
  return (facts::contains(plain, "batch") || has_short_word(text)) && !counts_batches(plain) &&
         !facts::contains(plain, "len(");
}

// test_bs, args.val_batch_size: how an evaluation is cut into batches changes none of its figures.
bool is_of_evaluation(std::string_view batch) {
  batch = batch.substr(batch.rfind('.') + 1);
  bool evaluates = false;
  for (const std::string& word : words_of_name(batch)) {
    if (word.starts_with("train")) return false;
    for (const std::string_view each : {"val", "valid", "validation", "eval", "test"})
      evaluates = evaluates || word == each;
  }
  return evaluates;
}

// Compared with a limit, or multiplied and compared with the total again: not the batch in use.
bool remainder_is_seen(Ref division) {
  const auto& tree = division.module->tree();
  const NodeId parent = tree[division.node].parent;
  const auto is_total = [&](NodeId at) {
    return at != kNoNode && tree[at].kind == Kind::binary && tree[at].op == Op::multiply;
  };
  if (parent == kNoNode) return false;
  if (tree[parent].kind == Kind::comparison || is_total(parent)) return true;
  if (tree[parent].kind == Kind::keyword_argument) {
    const std::string name = facts::lowered(tree.text(tree.child(parent, Field::name)));
    if (facts::contains(name, "len")) return true;
  }
  if (tree[parent].kind == Kind::conditional) return true;
  if (tree[parent].kind == Kind::assignment) {
    const std::string name = facts::lowered(tree.text(tree.child(parent, Field::left)));
    if (facts::contains(name, "remain") || facts::contains(name, "pad") ||
        facts::contains(name, "len") || facts::contains(name, "step") ||
        facts::contains(name, "accum"))
      return true;
  }
  // Padding: size - batch // ranks
  if (tree[parent].kind == Kind::binary && tree[parent].op == Op::subtract) return true;
  return tree[parent].kind == Kind::list && is_total(tree[parent].parent);
}

bool is_rank_count(std::string_view text) {
  const std::string plain = facts::lowered(text);
  for (const std::string_view word :
       {"world_size", "ngpu", "n_gpu", "num_gpu", "gpu_num", "gpu_count", "gpus_per_node",
        "device_count", "num_devices", "n_devices", "nproc", "num_proc", "num_replicas"})
    if (facts::contains(plain, word)) return true;
  return false;
}

// assert batch_size % world_size == 0, or a check that raises; often where the options are read.
// `batch_idx % log_interval` is no such check.
bool remainder_is_checked(const Program& program) {
  for (const diagnose::Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId node : module->nodes_of(Kind::binary)) {
      const NodeId left = tree.child(node, Field::left);
      // "%d samples a batch" % size formats a text.
      if (tree[node].op != Op::modulo || tree[left].kind == Kind::string ||
          tree[left].kind == Kind::concatenated_string)
        continue;
      const std::string_view total = tree.text(left);
      const Ref parts{module, tree.child(node, Field::right)};
      if (is_batch(total) && (is_rank_count(parts.text()) || facts::contains(total, "batch_size") ||
                              program.is_world_size(parts)))
        return true;
    }
  }
  return false;
}

// A function that draws or measures: forward passes without gradients, no backward pass.
bool trains_nothing(const Program& program, Ref division) {
  if (program.is_evaluation(division)) return true;
  const diagnose::FunctionRef function = program.enclosing_function(division);
  if (!function) return false;
  bool without_gradients = false;
  for (const CallRef& call : facts::calls_in({function.module, function.function->body})) {
    if (call.call->name == "backward") return false;
    without_gradients = without_gradients || call.call->api == diagnose::Api::no_grad;
  }
  return without_gradients;
}

}  // namespace

namespace {

// Whatever the number of GPUs in a machine is, it divides 8 or is rare.
constexpr std::int64_t kUsualGpus = 8;

// The name says that the batch is that of all ranks together, or the batch does not divide into the
// processes that a launch line starts.
bool remainder_matters(const Program& program, Ref batch, Ref divisor) {
  const auto total = program.integer(batch);
  if (total && *total > 1) {
    if (const auto parts = program.integer(divisor)) return *parts > 0 && *total % *parts != 0;
    for (const auto& launch : program.launches()) {
      const auto ranks = launch.processes_per_node();
      if (ranks && *ranks > 0 && *total % (*ranks * launch.nodes().value_or(1)) != 0) return true;
    }
  }
  const std::string name = facts::lowered(batch.text());
  return total && *total % kUsualGpus != 0 &&
         (facts::contains(name, "global") || facts::contains(name, "total"));
}

// Each command line of the project asks for a batch that its processes divide.
bool fits_every_launch(const Program& program, Ref batch) {
  const auto totals = facts::values_as_launched(program, batch);
  const auto& launches = program.launches();
  if (launches.empty() || totals.size() != launches.size()) return false;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const auto ranks = launches[i].processes_per_node();
    const auto all = ranks ? *ranks * launches[i].nodes().value_or(1) : 0;
    if (all <= 0 || !totals[i].is_integer() || totals[i].integer % all != 0) return false;
  }
  return true;
}

// max(1, batch_size // world_size), here or below.
bool is_kept_above_zero(const Program& program) {
  const auto limits = program.calls_named("max");
  return std::any_of(limits.begin(), limits.end(),
                     [](const CallRef& call) { return is_batch(call.ref().text()); });
}

// Several processes by a framework: not where the Trainers of Lightning are given one device.
bool framework_shares(const Program& program) {
  if (!program.framework_distributes()) return false;
  const auto uses = trainer::uses(program);
  return uses.empty() || std::any_of(uses.begin(), uses.end(), [](const trainer::Use& use) {
           return !trainer::is_one(use.find("devices")) && !trainer::is_one(use.find("gpus"));
         });
}

// An option, or what a config gives: users set it, and nothing tells them when it does not divide.
bool is_for_users_to_set(const Program& program, Ref batch) {
  const bool is_sharded = program.has_ddp() || framework_shares(program) ||
                          (program.mentions("FullyShardedDataParallel") &&
                           program.uses(diagnose::Api::distributed_sampler));
  // A program with a framework's strategy that asks for at least one sample has thought of the
  // rest.
  if (!is_sharded || fits_every_launch(program, batch) ||
      (!program.has_ddp() && is_kept_above_zero(program)))
    return false;
  const auto& sources = program.sources(batch);
  const auto is_option = [](const diagnose::Source& source) {
    return source.how == diagnose::Source::How::argument;
  };
  return !program.integer(batch) || std::any_of(sources.begin(), sources.end(), is_option);
}

// How many ranks there are, as far as mp.spawn, command lines and visible devices say.
std::vector<std::int64_t> known_ranks(const Program& program) {
  std::vector<std::int64_t> out;
  const auto add = [&](std::optional<std::int64_t> ranks) {
    if (ranks && *ranks > 0) out.push_back(*ranks);
  };
  for (const CallRef& spawn : program.calls(diagnose::Api::spawn))
    add(program.integer(spawn.argument(2, "nprocs")));
  for (const auto& launch : program.launches()) {
    add(launch.visible_devices());
    if (const auto each = launch.processes_per_node()) add(*each * launch.nodes().value_or(1));
  }
  add(facts::visible_gpus(program));
  if (program.gpus()) add(*program.gpus());
  return out;
}

// Every batch that config files and command lines of the project ask for divides into the usual
// numbers of GPUs, and into those that are known.
bool divides_as_known(const Program& program, Ref batch) {
  std::vector<diagnose::Value> known = facts::values_as_launched(program, batch);
  const std::string_view own = program.root().path();
  const std::string text(batch.text());
  std::string key = text.substr(text.rfind('.') + 1);
  if (batch.kind() == Kind::subscript)
    key = program.string(batch.child(Field::subscript)).value_or("");
  for (const diagnose::ShippedValue& each : program.shipped(key))
    if (each.script.empty() || each.script == own.substr(own.rfind('/') + 1))
      known.push_back(each.value);
  const auto ranks = known_ranks(program);
  return !known.empty() &&
         std::all_of(known.begin(), known.end(), [&](const diagnose::Value& value) {
           return value.is_integer() && value.integer > 0 && value.integer % kUsualGpus == 0 &&
                  std::all_of(ranks.begin(), ranks.end(),
                              [&](std::int64_t each) { return value.integer % each == 0; });
         });
}

// A config file or a command line of the project asks for another number.
bool is_shipped_otherwise(const Program& program, Ref batch) {
  const std::string text(batch.text());
  const auto shipped = program.shipped(text.substr(text.rfind('.') + 1));
  return std::any_of(shipped.begin(), shipped.end(), [](const diagnose::ShippedValue& each) {
    return !each.value.is_integer() || each.value.integer != 1;
  });
}

// A batch of 1, or an option that is 1 where nothing in the project sets it to more: two ranks
// leave nothing of it.
bool is_zero_on_two_ranks(const Program& program, Ref batch, Ref division) {
  const auto launched = facts::values_as_launched(program, batch);
  if (!program.launches().empty() &&
      std::none_of(launched.begin(), launched.end(), [](const diagnose::Value& value) {
        return value.is_integer() && value.integer == 1;
      }))
    return false;
  return program.integer(batch) == 1 && program.has_ddp() && !is_kept_above_zero(program) &&
         is_unconditional(program, division) && !is_shipped_otherwise(program, batch);
}

}  // namespace

namespace {

bool stands_in_print(const Program& program, Ref division) {
  const auto& tree = division.module->tree();
  for (NodeId at = tree.ancestor(division.node, Kind::call); at != diagnose::kNoNode;
       at = tree.ancestor(at, Kind::call)) {
    const CallRef call = program.as_call(division.with(at));
    if (call && (call.call->name == "print" || call.call->name == "info")) return true;
  }
  return false;
}

// share after share = batch // ranks and after share, steps = batch // ranks, 10.
NodeId name_given_to(Ref division) {
  const auto& tree = division.module->tree();
  const NodeId parent = tree[division.node].parent;
  for (const diagnose::Def& def : division.module->defs()) {
    const bool is_item =
        def.element >= 0 && def.value == parent && tree[parent].kind == Kind::tuple &&
        tree.child_at(parent, static_cast<std::size_t>(def.element)) == division.node;
    if (def.kind == diagnose::DefKind::assign && (def.value == division.node || is_item))
      return tree[def.target].kind == Kind::identifier ? def.target : kNoNode;
  }
  return kNoNode;
}

// print(f"Batch of each device: {batch_size // devices}"), or of a name that it has and that is
// used nowhere else: nothing is made of it.
bool is_only_printed(const Program& program, Ref division) {
  if (stands_in_print(program, division)) return true;
  const auto& tree = division.module->tree();
  const NodeId name = name_given_to(division);
  if (name == kNoNode) return false;
  bool is_printed = false;
  for (NodeId at = 0; at < tree.size(); ++at) {  // functions above may read it, too
    if (at == name || tree[at].kind != Kind::identifier || tree.text(at) != tree.text(name))
      continue;
    if (!stands_in_print(program, division.with(at))) return false;
    is_printed = true;
  }
  return is_printed;
}

}  // namespace

namespace {

// args.n_procs of DistributedSampler(data, num_replicas=args.n_procs), or of the join itself.
bool is_given_as_world_size(const Program& program, Ref divisor) {
  const auto is_it = [&](Ref given) {
    return given && given.kind() == divisor.kind() && given.text() == divisor.text();
  };
  if (divisor.kind() != Kind::attribute && divisor.kind() != Kind::subscript) return false;
  for (const CallRef& sampler : program.calls(diagnose::Api::distributed_sampler))
    if (is_it(sampler.argument(1, "num_replicas"))) return true;
  for (const CallRef& join : program.calls(diagnose::Api::init_process_group))
    if (is_it(join.keyword("world_size"))) return true;
  return false;
}

}  // namespace

void check_truncating_batch_division(const Program& program, Report& report) {
  if (!program.imports("torch") && program.imports("tensorflow")) return;
  const auto divided_by_ranks = [&](Ref divisor) {
    return program.is_world_size(divisor) || is_rank_count(divisor.text()) ||
           is_given_as_world_size(program, divisor);
  };
  const auto flag = [&](Ref where, Ref batch, Ref divisor, Severity severity) {
    const auto total = program.integer(batch);
    const auto parts = program.integer(divisor);
    // An option for the number of ranks that is 1 where nobody sets it tells nothing of the runs.
    const bool is_left_at_one = parts == 1 && program.evaluate(divisor).is_default;
    if (total && parts && *parts > 0 && *total % *parts == 0 && !is_left_at_one) return;
    if (remainder_is_checked(program) || remainder_is_seen(where)) return;
    if (is_zero_on_two_ranks(program, batch, where)) {
      in_no_trial(
          report.at(
              where, Confidence::likely,
              "a batch of 1 is divided by the number of ranks: each gets a batch of 0 where there "
              "are two or more"))
          .help = "Take it as the batch of one rank, or ask for at least one sample of each.";
      return;
    }
    Finding& finding = report.at(where, Confidence::likely,
                                 "the batch is divided by the number of ranks and the remainder is "
                                 "dropped: the global batch "
                                 "is smaller than the one asked for");
    finding.severity = severity;
    // Most batches are powers of two, which the usual numbers of ranks divide.
    if (is_of_evaluation(batch.text()) ||
        (!remainder_matters(program, batch, divisor) && !is_for_users_to_set(program, batch)))
      finding.severity = Severity::info;
    else if (!remainder_matters(program, batch, divisor) && divides_as_known(program, batch))
      tell_as_note(finding, "every batch that is known here divides by 8");
    finding.help = "Check that it divides: assert batch_size % world_size == 0.";
  };
  for (const Module* module : program.modules()) {
    for (const NodeId node : module->nodes_of(Kind::binary)) {
      const Ref at{module, node};
      const Op op = module->tree()[node].op;
      const Ref left = at.child(Field::left);
      const Ref right = at.child(Field::right);
      if ((op != Op::floor_divide && op != Op::divide) || !is_batch(left.text()) ||
          !divided_by_ranks(right) || is_batch(right.text()) || is_only_printed(program, at))
        continue;  // total // (batch of one rank * ranks) counts steps
      if (left.kind() != Kind::identifier && left.kind() != Kind::attribute &&
          left.kind() != Kind::subscript)
        continue;
      if (op == Op::floor_divide) {
        flag(at, left, right, trains_nothing(program, at) ? Severity::info : Severity::warning);
        continue;
      }
      const NodeId list = module->tree()[node].parent;
      const CallRef cast =
          list == kNoNode ? CallRef{} : program.as_call({module, module->tree()[list].parent});
      if (cast && cast.call->name == "int") flag(cast.ref(), left, right, Severity::info);
    }
    for (const NodeId node : module->nodes_of(Kind::augmented_assignment)) {
      const Ref at{module, node};
      if (module->tree()[node].op == Op::floor_divide && is_batch(at.child(Field::left).text()) &&
          divided_by_ranks(at.child(Field::right)))
        flag(at, at.child(Field::left), at.child(Field::right), Severity::warning);
    }
  }
}

void judge_truncating_batch_division(const RunEvidence& run, RunReport& report) {
  const double wanted = run.number("global_batch");
  const double trained = run.number("samples_per_step");
  if (!(trained < wanted)) return;
  Finding& finding =
      report.add(Confidence::certain, "a step trains on " + figure(trained) +
                                          " samples where the batch is " + figure(wanted));
  finding.help = "Choose a batch that the number of ranks divides, or hand the remainder out.";
}

Price price_truncating_batch_division(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const double wanted = broken.number("global_batch");
  const double trained = broken.number("samples_per_step");
  price.reproduced = trained < wanted;
  price.gone = cured.number("samples_per_step") == wanted;
  price.cost = wanted - trained;
  price.unit = "samples of each step never seen";
  price.seen = "silent: " + figure(trained) + " samples per step instead of " + figure(wanted);
  return price;
}

}  // namespace bench::pitfalls
