#include "scenarios/pitfalls/ranks/own_readings.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// time.time(), datetime.now()
bool tells_time(const CallRef& call) {
  if (call.call->api == Api::time_now) return true;
  const std::string_view path = call.call->path;
  return path == "datetime.datetime.now" || path == "datetime.datetime.utcnow";
}

bool holds_a_time(Ref value) {
  const auto calls = facts::calls_in(value);
  return !calls.empty() && std::all_of(calls.begin(), calls.end(), tells_time);
}

// loss is None, after a, loss = ddp(batch).
bool misses_an_output(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree[condition.node].op != diagnose::Op::is ||
      tree.child_count(condition.node) != 2 ||
      tree[tree.child_at(condition.node, 1)].kind != Kind::none_literal)
    return false;
  const auto& sources = program.sources(condition.with(tree.child_at(condition.node, 0)));
  const auto& forwards = program.forward_calls();
  return sources.size() == 1 &&
         std::any_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
           return forward.wrap->kind == diagnose::Wrapper::ddp &&
                  forward.call.ref() == sources.front().ref;
         });
}

}  // namespace

bool has_clock(Ref condition) {
  const auto calls = facts::calls_in(condition);
  return std::any_of(calls.begin(), calls.end(), tells_time);
}

bool reads_the_clock(const Program& program, Ref condition) {
  if (program.mentions_rank(condition)) return false;
  const auto calls = facts::calls_in(condition);
  if (has_clock(condition)) return true;
  if (!calls.empty() || condition.kind() != Kind::comparison) return false;
  std::vector<Assigned> assigned = assignments_in(body_around(program, condition));
  // By arithmetic alone: what a helper makes of a time is no time.
  std::erase_if(assigned, [](const Assigned& each) {
    return !facts::calls_in(each.value).empty() && !holds_a_time(each.value);
  });
  const VariableNames names = behind(variables_in(condition), assigned);
  return std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
    return names.contains(each.name) && holds_a_time(each.value);
  });
}

bool reads_an_output(const Program& program, Ref condition) {
  if (misses_an_output(program, condition)) return true;
  const auto& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id)
    for (const diagnose::Source& source : program.sources(condition.with(id))) {
      const CallRef item = program.as_call(source.ref);
      if (item && item.call->name == "item" && item.receiver() &&
          !facts::forwards_behind(program, item.receiver()).empty())
        return true;
    }
  return false;
}

}  // namespace bench::pitfalls
