#include "scenarios/pitfalls/steps/rounds_elsewhere.hpp"

#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::RankTest;

namespace {

// model, of model, optimizer = accelerator.prepare(model, optimizer) above.
bool is_given_back(const Program& program, Ref name) {
  if (name.kind() != Kind::identifier) return false;
  const auto& defs = name.module->defs_of(name.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const diagnose::Def& def = name.module->defs()[index];
    const CallRef prepare =
        def.value == kNoNode ? CallRef{} : program.as_call(name.with(def.value));
    return prepare && diagnose::is_prepare(prepare.call->name) &&
           is_of_accelerator(program, prepare) && program.runs_before(prepare.ref(), name);
  });
}

}  // namespace

bool trains_elsewhere(const Program& program, Ref round) {
  const auto calls = facts::calls_in(round);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const bool of_object = call.receiver() && program.qualified(call.receiver()).empty();
    if (!says_any(call.call->name, {"train"}) || of_object || program.callee(call) ||
        program.guarded_by_rank(call.ref()) != RankTest::none)
      return false;
    const auto given = facts::arguments_of(call);
    return std::any_of(given.begin(), given.end(), [&](Ref each) {
      return program.is_wrapped(each, diagnose::Wrapper::ddp) || is_given_back(program, each);
    });
  });
}

bool meets_in_each(const Program& program, Ref round, Ref leaving) {
  for (const NodeId node : round.module->nodes_of(Kind::return_statement))
    if (program.innermost_loop(round.with(node)) == round) return false;
  for (const NodeId node : round.module->nodes_of(Kind::break_statement))
    if (node != leaving.node && program.innermost_loop(round.with(node)) == round) return false;
  const auto calls = facts::calls_in(round);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return (call.call->api == Api::barrier || call.call->api == Api::all_reduce ||
            call.call->api == Api::all_gather) &&
           !call.keyword("group") && program.innermost_loop(call.ref()) == round &&
           program.guarded_by_rank(call.ref()) == RankTest::none;
  });
}

}  // namespace bench::pitfalls
