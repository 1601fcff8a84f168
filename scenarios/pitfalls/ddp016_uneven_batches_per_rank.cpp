#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/trial_prices.hpp"

#include <algorithm>

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

}  // namespace

void check_uneven_batches_per_rank(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  if (counts_steps(program)) return;
  if (program.mentions("Join(") || program.mentions("model.join(")) return;
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
      if (facts::contains(tree.text(owner), "total_size") ||
          facts::contains(tree.text(owner), "num_samples") ||
          facts::contains(tree.text(owner), "total_samples") || program.is_evaluation(subscript))
        continue;
      if (is_worked_off(program, subscript)) continue;
      report
          .at(subscript, Confidence::likely,
              "data is dealt out by slicing: ranks get one sample more or less, and the last "
              "collective "
              "of the epoch waits for a rank that is done")
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
