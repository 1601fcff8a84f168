#include "scenarios/pitfalls/metrics/last_batch.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

bool is_figure(const Assigned& each) {
  return says_any(each.name, {"loss", "acc", "metric", "score", "mse", "error"});
}

// Not torch.log(loss), which is a number of it.
bool tells(const Program& program, const CallRef& call) {
  constexpr std::string_view kNames[] = {"print", "log",        "log_dict",    "log_metrics",
                                         "info",  "add_scalar", "add_scalars", "write"};
  if (std::find(std::begin(kNames), std::end(kNames), call.call->name) == std::end(kNames))
    return false;
  const std::string path = program.qualified({call.module, call.call->function});
  return !path.starts_with("torch.") && !path.starts_with("numpy.") && !path.starts_with("math.");
}

// print(loss.item()), writer.add_scalar("loss", loss), f"{loss}" and return loss, below the loop.
bool is_told_below(const Program& program, Ref loop, const std::string& name) {
  const Module& module = *loop.module;
  const auto& tree = module.tree();
  const NodeId below = tree[loop.node].last;
  const Ref body = body_around(program, loop);
  const NodeId end = tree[body.node].last;
  for (const CallRef& call : facts::calls_in(body))
    if (call.call->node >= below && tells(program, call) &&
        variables_in(call.ref().child(diagnose::Field::arguments)).contains(name))
      return true;
  for (NodeId at = below; at < end; ++at)
    if (tree[at].kind == Kind::return_statement && variables_in(loop.with(at)).contains(name))
      return true;
  return false;
}

}  // namespace

MetricSum figure_of_last_batch(const Program& program, Ref loop) {
  const std::vector<Assigned> in_loop = assignments_in(loop);
  if (facts::has_break(program, loop) || first_sum(program, loop)) return {};
  for (const Assigned& each : in_loop)
    if (each.value && is_figure(each) && is_metric(each, in_loop) &&
        is_told_below(program, loop, each.name))
      return {loop.with(each.target), each.name};
  return {};
}

}  // namespace bench::pitfalls
