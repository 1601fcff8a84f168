// Whether what leads to a node tests the rank.
#include "scenarios/pitfalls/reach/tested_callers.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls::facts {

using diagnose::FunctionRef;
using diagnose::RankTest;

namespace {

constexpr int kTestedCallDepth = 6;

// if rank == 0 and last: save() elif last: save(): the second call is meant for this function too,
// and it tests nothing.
bool is_called_untested_beside(const Program& program, const std::vector<CallRef>& sites) {
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& untested) {
    return program.guarded_by_rank(untested.ref()) == RankTest::none &&
           std::any_of(sites.begin(), sites.end(), [&](const CallRef& tested) {
             return program.guarded_by_rank(tested.ref()) != RankTest::none &&
                    exclusive(tested.ref(), untested.ref());
           });
  });
}

// if rank == 0: train(writer) else: train(None): every rank comes by one of the two calls.
bool is_called_by_the_others(const Program& program, const std::vector<CallRef>& sites,
                             const CallRef& site) {
  const RankTest test = program.guarded_by_rank(site.ref());
  return test != RankTest::none &&
         std::any_of(sites.begin(), sites.end(), [&](const CallRef& other) {
           const RankTest its = program.guarded_by_rank(other.ref());
           return its != RankTest::none && its != test && exclusive(site.ref(), other.ref());
         });
}

// data = Data(), and if rank == 0: validate(), which makes one too: every rank that comes by the
// test has run the other call.
bool is_run_by_all_beside(const Program& program, const std::vector<CallRef>& untested,
                          CallRef tested) {
  for (int depth = 0; depth < kTestedCallDepth && !program.rank_guard(tested.ref()); ++depth) {
    const FunctionRef function = program.enclosing_function(tested.ref());
    if (!function || program.call_sites(function).size() != 1) return false;
    tested = program.call_sites(function).front();
  }
  const FunctionRef around = program.enclosing_function(tested.ref());
  return around && std::any_of(untested.begin(), untested.end(), [&](const CallRef& each) {
           return program.enclosing_function(each.ref()) == around &&
                  runs_wherever(program, each.ref(), tested.ref());
         });
}

struct Seen {
  std::vector<FunctionRef> functions;
  std::vector<CallRef> untested;  // calls on the way
};

// What is known of a function does not depend on the way to it: each is looked at once.
bool is_tested_above(const Program& program, Ref node, Seen& seen, int depth) {
  const FunctionRef function = program.enclosing_function(node);
  if (!function || depth > kTestedCallDepth ||
      std::find(seen.functions.begin(), seen.functions.end(), function) != seen.functions.end())
    return false;
  seen.functions.push_back(function);
  const auto& sites = program.call_sites(function);
  if (is_called_untested_beside(program, sites)) return false;
  for (const CallRef& site : sites)
    if (program.guarded_by_rank(site.ref()) == RankTest::none &&
        !only_without_distribution(program, site.ref()))
      seen.untested.push_back(site);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const bool tests = program.guarded_by_rank(site.ref()) != RankTest::none;
    return (tests && !is_called_by_the_others(program, sites, site) &&
            !is_run_by_all_beside(program, seen.untested, site)) ||
           is_tested_above(program, site.ref(), seen, depth + 1);
  });
}

}  // namespace

bool some_caller_tests_rank(const Program& program, Ref node) {
  Seen seen;
  return is_tested_above(program, node, seen, 0);
}

bool is_left_to_callers(const Program& program, Ref node) {
  const FunctionRef function = program.enclosing_function(node);
  if (!function || !is_offered(program, function)) return false;
  const auto works_in_ranks = [&](const CallRef& call) {
    return call.call->name == "backward" || call.call->api == diagnose::Api::ddp ||
           call.call->api == diagnose::Api::init_process_group;
  };
  return !function.function->makes_object() &&
         !program.subtree_calls({function.module, function.function->body}, works_in_ranks);
}

}  // namespace bench::pitfalls::facts
