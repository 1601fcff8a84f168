#include "scenarios/pitfalls/ranks/loss_verdicts.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/local_decisions.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

// One of this program has to look for numbers that are none.
bool is_verdict_on_loss(const Program& program, Ref condition) {
  if (condition.kind() == Kind::not_expression)
    condition = condition.child(diagnose::Field::argument);
  for (const Ref each : facts::calls_behind(program, condition)) {
    const CallRef call = program.as_call(each);
    if (!call || call.call->api != Api::none) continue;
    const std::string name = facts::lowered(call.call->name);
    const auto callee = program.callee(call);
    const bool looks = callee ? depends_on_local_data(callee.module->text(callee.function->body))
                              : holds_any(name, {"check", "valid", "finite"});
    const std::string given = facts::lowered(call.positional(0).text());
    if (looks && facts::contains(name, "loss") && facts::contains(given, "loss")) return true;
  }
  return false;
}

bool is_flag_of_loss(const Program& program, Ref condition, Ref round) {
  const bool is_negated = condition.kind() == Kind::not_expression;
  const Ref flag = is_negated ? condition.child(diagnose::Field::argument) : condition;
  const auto decisions = decisions_behind(program, flag, round);  // the flag itself comes first
  return std::any_of(decisions.begin() + 1, decisions.end(), [&](Ref decision) {
    return depends_on_local_data(decision.text()) || is_verdict_on_loss(program, decision);
  });
}

}  // namespace bench::pitfalls
