#include "scenarios/pitfalls/metrics/summed_mean.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;

namespace {

bool has_word_of_ranks(std::string_view text) {
  return says_any(text, {"world", "num_gpu", "n_gpu", "ngpu", "gpus", "device_count", "replica",
                         "size()", "num_proc", "nproc", "num_rank", "n_rank", "num_shards"});
}

// if i % world_size != rank: continue: the ranks share out the batches of a loader for all.
bool shares_out_batches(Ref loop) {
  const auto& tree = loop.module->tree();
  for (NodeId node = loop.node; node < tree[loop.node].last; ++node)
    if (tree[node].kind == Kind::binary && tree[node].op == Op::modulo &&
        has_word_of_ranks(tree.text(node)))
      return true;
  return false;
}

// dist.all_reduce(total) and dist.reduce(total, 0) that add; op=ReduceOp.AVG gives the mean.
bool adds_over_ranks(const CallRef& call) {
  const Ref op = call.call->api == Api::reduce ? call.argument(2, "op") : call.argument(1, "op");
  return call.positional(0) && (!op || op.text().ends_with("SUM"));
}

// What the loop adds up of its batches, one figure a batch.
VariableNames figures_of(Ref loop) {
  const std::vector<Assigned> in_loop = assignments_in(loop);
  VariableNames sums;
  for (const Assigned& each : additions_in(loop))
    if (is_metric(each, in_loop) && !facts::contains(each.value.text(), "size") &&
        !facts::contains(each.value.text(), "len("))
      sums.insert(each.name);
  return sums;
}

// len(loader), also under a name of its own.
bool counts_batches(const Program& program, Ref divisor, Ref loop) {
  const Ref loader = program.strip_iterable(loop.child(Field::right));
  if (!loader || !divisor) return false;
  const std::string length = "len(" + std::string(loader.text()) + ")";
  if (divisor.text() == length) return true;
  const auto& sources = program.sources(divisor);
  return divisor.kind() == Kind::identifier && sources.size() == 1 &&
         sources.front().ref.text() == length &&
         program.enclosing_function(sources.front().ref) == program.enclosing_function(loop);
}

// mean = total / len(loader), and mean / world_size further down.
bool is_scaled_below(const CallRef& reduction, Ref body, const std::vector<Assigned>& assigned,
                     const std::string& name) {
  const auto& tree = body.module->tree();
  VariableNames made{name};
  for (const Assigned& each : assigned)  // in source order
    if (each.target > reduction.call->node && meet(variables_in(each.value), made))
      made.insert(each.name);
  for (NodeId node = tree[reduction.call->node].last; node < tree[body.node].last; ++node) {
    const bool scales =
        tree[node].kind == Kind::binary || tree[node].kind == Kind::augmented_assignment;
    if (scales && has_word_of_ranks(tree.text(node)) && meet(variables_in(body.with(node)), made))
      return true;
  }
  return false;
}

}  // namespace

SummedMean summed_mean(const Program& program, Ref loop) {
  const auto& tree = loop.module->tree();
  const VariableNames sums = figures_of(loop);
  if (sums.empty() || has_word_of_ranks(loop.child(Field::right).text()) ||
      shares_out_batches(loop))
    return {};
  const Ref body = body_around(program, loop);
  const std::vector<Assigned> assigned = assignments_in(body);
  for (const Api api : {Api::all_reduce, Api::reduce})
    for (const CallRef& call : program.calls(api)) {
      if (call.module != loop.module || !adds_over_ranks(call) ||
          !tree.contains(body.node, call.call->node) || call.call->node < tree[loop.node].last ||
          program.innermost_loop(call.ref()) != program.innermost_loop(loop))
        continue;
      const Ref given = call.positional(0);
      if (!diagnose::stands_for_object(given)) continue;
      const std::string name(given.text());
      if (!meet(behind({name}, assigned), sums)) continue;
      // total /= world_size, or one rank of several adds: made up for by hand.
      const auto of_ranks = [&](const Assigned& each) {
        return (each.name == name || variables_in(each.value).contains(name) ||
                sums.contains(each.name)) &&
               has_word_of_ranks(statement_of(each.value).text());
      };
      if (std::any_of(assigned.begin(), assigned.end(), of_ranks) ||
          is_scaled_below(call, body, assigned, name))
        continue;
      for (NodeId node = tree[call.call->node].last; node < tree[body.node].last; ++node) {
        const Ref division = body.with(node);
        const bool divides =
            division.kind() == Kind::binary || division.kind() == Kind::augmented_assignment;
        if (!divides || tree[node].op != Op::divide ||
            !variables_in(division.child(Field::left)).contains(name) ||
            !counts_batches(program, division.child(Field::right), loop))
          continue;
        if (has_word_of_ranks(statement_of(division).text())) return {};
        return {division, name};
      }
    }
  return {};
}

}  // namespace bench::pitfalls
