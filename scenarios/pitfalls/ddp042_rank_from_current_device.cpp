#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <cstdint>
#include <set>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// here = torch.cuda.current_device(); DistributedSampler(data, rank=here)
bool is_given_as_rank(const Program& program, Ref current) {
  for (const Api api : {Api::distributed_sampler, Api::init_process_group})
    for (const CallRef& call : program.calls(api))
      if (const CallRef rank = program.made_by(call.keyword("rank")); rank && rank.ref() == current)
        return true;
  return false;
}

}  // namespace

void check_rank_from_current_device(const Program& program, Report& report) {
  for (const CallRef& call : program.calls(Api::current_device)) {
    const Ref node = call.ref();
    const auto& tree = node.module->tree();
    const NodeId parent = tree[node.node].parent;
    const std::string name = facts::lowered(program.assigned_name(node));
    bool as_rank = name == "rank" || name == "global_rank" || name.ends_with(".rank") ||
                   name.ends_with("global_rank");
    if (parent != kNoNode && tree[parent].kind == Kind::comparison && program.has_ddp()) {
      const Ref other = node.with(tree.child_at(parent, 0) == node.node ? tree.child_at(parent, 1)
                                                                        : tree.child_at(parent, 0));
      as_rank = as_rank || program.integer(other) == 0;
    }
    if (parent != kNoNode && tree[parent].kind == Kind::keyword_argument)
      as_rank = as_rank || tree.text(tree.child(parent, Field::name)) == "rank";
    as_rank = as_rank || is_given_as_rank(program, node);
    const auto inside = program.enclosing_function(node);
    const bool local = facts::contains(name, "local") ||
                       (inside && facts::contains(facts::lowered(inside.function->name), "local"));
    if (!as_rank || local) continue;  // the first rank of a node
    report
        .at(node, Confidence::certain,
            "the current device is taken for the rank: it is 0 on every rank until set_device is "
            "called, "
            "and repeats on every node")
        .help = "Use dist.get_rank().";
  }
}

void judge_rank_from_current_device(const RunEvidence& run, RunReport& report) {
  const std::vector<Json> ranks = run.of_every_rank("rank");
  const std::vector<Json> used = run.of_every_rank("rank_used");
  if (used.empty() || used == ranks) return;
  Finding& finding =
      report.add(Confidence::certain, "the processes of ranks " + listed(Json(ranks)) +
                                          " act as ranks " + listed(Json(used)));
  finding.help = "Take the rank from the process group: dist.get_rank(), or RANK.";
}

Price price_rank_from_current_device(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const auto distinct = [](const RunEvidence& run) {
    std::set<std::int64_t> seen;
    for (const Json& indices : run.of_every_rank("indices"))
      for (const Json& index : indices) seen.insert(index.get<std::int64_t>());
    return static_cast<double>(seen.size());
  };
  const double size = broken.number("dataset_size");
  price.reproduced = distinct(broken) < size;
  price.gone = distinct(cured) == size;
  price.cost = 100 * (size - distinct(broken)) / size;
  price.unit = "% of the samples never seen";
  price.seen = "silent: every process takes itself for rank " +
               listed(Json(broken.of_every_rank("rank_used"))).substr(0, 1) +
               " and reads its share of the data";
  return price;
}

}  // namespace bench::pitfalls
