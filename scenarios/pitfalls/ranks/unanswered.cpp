#include "scenarios/pitfalls/ranks/unanswered.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;

namespace {

// if rank != 0: wait(); return -- and wait() below, which only the other ranks come to.
bool leaves_others_below(const Program& program, const CallRef& site, const CallRef& other) {
  const Ref guard = program.rank_guard(site.ref());
  if (!guard || other.module != site.module || other.call->node < site.call->node ||
      program.enclosing_function(other.ref()) != program.enclosing_function(site.ref()))
    return false;
  const auto& tree = site.module->tree();
  for (diagnose::NodeId at = tree[site.call->node].parent; at != diagnose::kNoNode;
       at = tree[at].parent) {
    if (tree[at].kind == diagnose::Kind::if_statement) return false;
    if (tree[at].kind != diagnose::Kind::block) continue;
    diagnose::NodeId last = tree[at].first_child;
    while (last != diagnose::kNoNode && tree[last].next_sibling != diagnose::kNoNode)
      last = tree[last].next_sibling;
    if (last != diagnose::kNoNode && tree[last].kind == diagnose::Kind::return_statement &&
        tree.contains(tree[at].parent, guard.node) &&
        !tree.contains(tree[at].parent, other.call->node))
      return true;
  }
  return false;
}

// broadcast(signal, src=0) where the first rank sends and, in the function around or within, where
// the others listen for it: the same tensor by its name.
bool is_answered(const Program& program, const CallRef& call, const CallRef& other) {
  const Ref tensor = call.positional(0);
  const auto mine = program.enclosing_function(call.ref());
  const auto theirs = program.enclosing_function(other.ref());
  return call.call->api == Api::broadcast && call.module == other.module && mine && theirs &&
         tensor.kind() == diagnose::Kind::identifier &&
         tensor.text() == other.positional(0).text() &&
         (call.module->tree().contains(mine.function->node, theirs.function->node) ||
          call.module->tree().contains(theirs.function->node, mine.function->node)) &&
         program.rank_guard(call.ref()) && program.rank_guard(other.ref());
}

// dist.barrier(group), dist.all_reduce(x, op, group)
bool names_a_group(const CallRef& call) {
  const std::size_t place = call.call->api == Api::barrier ? 0 : 2;
  return call.keyword("group") || call.positional(place);
}

// if rank == 0: net = DDP(net), above dist.broadcast(phase, src=0) on all ranks, and the DDP of the
// other ranks below that: each meets with another one.
bool meet_between(const Program& program, const CallRef& one, const CallRef& other) {
  const auto [first, last] = std::minmax(one.call->node, other.call->node);
  const auto function = program.enclosing_function(one.ref());
  const Ref loop = program.innermost_loop(one.ref());
  const auto is_beside = [&](const CallRef& call) {
    return call.module == one.module && program.enclosing_function(call.ref()) == function &&
           program.innermost_loop(call.ref()) == loop;
  };
  if (!is_beside(other)) return false;
  for (const Api api : {Api::barrier, Api::all_reduce, Api::all_gather, Api::broadcast})
    for (const CallRef& call : program.calls(api))
      if (is_beside(call) && call.call->node > first && call.call->node < last &&
          !names_a_group(call) && program.guarded_by_rank(call.ref()) == RankTest::none &&
          (runs_wherever(program, call.ref(), one.ref()) ||
           runs_wherever(program, call.ref(), other.ref())))
        return true;
  return false;
}

}  // namespace

bool is_matched(const Program& program, const CallRef& call) {
  const Ref guard = program.rank_guard(call.ref());
  const auto others = call.call->api == Api::none ? program.calls_named(call.call->name)
                                                  : program.calls(call.call->api);
  for (const CallRef& other : others) {
    if (other.call == call.call) continue;
    // if sharded: if rank == 0: save() else: if rank == 0: save() -- of the same ranks.
    if (facts::exclusive(call.ref(), other.ref()) &&
        program.guarded_by_rank(other.ref()) != program.guarded_by_rank(call.ref()) &&
        !meet_between(program, call, other))
      return true;
    if (program.guarded_by_rank(other.ref()) == RankTest::none &&
        leaves_others_below(program, call, other))
      return true;
    if (call.call->api != Api::barrier && call.call->api != Api::none &&
        program.enclosing_function(other.ref()) != program.enclosing_function(call.ref()) &&
        !is_answered(program, call, other))
      continue;
    const RankTest mine = program.guarded_by_rank(call.ref());
    const RankTest theirs = program.guarded_by_rank(other.ref());
    if (theirs != RankTest::none && theirs != mine && !meet_between(program, call, other))
      return true;
  }
  return !guard && call.call->api == Api::broadcast && !program.enclosing_function(call.ref());
}

namespace {

// reduce_mean(x) of the program, which calls a collective whatever the rank.
bool always_calls(const Program& program, const CallRef& collective) {
  if (collective.keyword("group") || program.guarded_by_rank(collective.ref()) != RankTest::none)
    return false;
  const auto guards = program.guards(collective.ref());
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    // if loader is None: return -- there is nothing to do for any rank
    return program.is_distributed_flag(guard.condition) ||
           (!guard.holds && guard.condition.text().ends_with(" is None"));
  });
}

// if dist.is_initialized(): barrier() in the helper, and all that joins the group, as trainer.fit()
// of Lightning does, comes after this call: it does nothing yet.
bool is_joined_later(const Program& program, const CallRef& collective, const CallRef& site) {
  const auto guards = program.guards(collective.ref());
  if (std::none_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
        return guard.holds && facts::contains(guard.condition.text(), "is_initialized");
      }))
    return false;
  const auto joins = program.calls(Api::init_process_group);
  std::vector<CallRef> all(joins.begin(), joins.end());
  for (const std::string_view name : {"fit", "validate", "test", "predict"})
    for (const CallRef& call : program.calls_named(name))
      if (call.receiver() && program.comes_from(call.receiver(), Api::lightning_trainer))
        all.push_back(call);
  return !all.empty() && std::all_of(all.begin(), all.end(), [&](const CallRef& join) {
    return only_runs_before(program, site.ref(), join.ref());
  });
}

// if dist.is_initialized(): gather() in the helper, and the ranks have left the group before.
bool is_left_before(const Program& program, const CallRef& collective, const CallRef& site) {
  const auto guards = program.guards(collective.ref());
  const auto leaves = program.calls(Api::destroy_process_group);
  return std::any_of(guards.begin(), guards.end(),
                     [](const diagnose::Guard& guard) {
                       return guard.holds &&
                              facts::contains(guard.condition.text(), "is_initialized");
                     }) &&
         std::any_of(leaves.begin(), leaves.end(), [&](const CallRef& leave) {
           return only_runs_before(program, leave.ref(), site.ref()) &&
                  program.guarded_by_rank(leave.ref()) == RankTest::none;
         });
}

std::vector<CallRef> calls_of_some(const Program& program, const CallRef& collective, int depth) {
  constexpr int kHelpers = 3;
  std::vector<CallRef> out;
  const auto helper = program.enclosing_function(collective.ref());
  if (!helper || !always_calls(program, collective)) return out;
  const auto& sites = program.call_sites(helper);
  // meter.all_reduce(): of objects of that class only, not of whatever has such a method.
  const diagnose::ClassRef owner = helper.function->owner_class == diagnose::kNoNode
                                       ? diagnose::ClassRef{}
                                       : program.enclosing_class(collective.ref());
  if (owner && std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
        return !site.receiver() || program.class_of(site.receiver()) != owner;
      }))
    return out;
  for (const CallRef& site : sites) {
    const RankTest mine = program.guarded_by_rank(site.ref());
    if (mine == RankTest::none && depth < kHelpers && program.enclosing_function(site.ref()))
      for (const CallRef& further : calls_of_some(program, site, depth + 1)) out.push_back(further);
    if (mine == RankTest::none || !program.rank_guard(site.ref()) ||
        is_joined_later(program, collective, site) || is_left_before(program, collective, site) ||
        facts::only_without_distribution(program, site.ref()))
      continue;
    const bool answered = std::any_of(sites.begin(), sites.end(), [&](const CallRef& other) {
      const RankTest theirs = program.guarded_by_rank(other.ref());
      return facts::exclusive(site.ref(), other.ref()) ||
             (theirs != RankTest::none && theirs != mine) ||
             (theirs == RankTest::none && leaves_others_below(program, site, other));
    });
    if (!answered && sites.size() > 1) out.push_back(site);
  }
  return out;
}

}  // namespace

std::vector<CallRef> lonely_calls(const Program& program, const CallRef& collective) {
  return calls_of_some(program, collective, 0);
}

}  // namespace bench::pitfalls
