#include "scenarios/pitfalls/ranks/wrapped_ranks.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Wrap;

namespace {

template <typename Accepts>
bool surely_wraps(const Program& program, const Accepts& accepts) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return wrap.kind == diagnose::Wrapper::ddp && accepts(wrap) &&
           certainty_of_reach(program, wrap.call.ref()) == Certainty::certain;
  });
}

// A file that others use may be started as one process, unless it asks a launcher's environment.
bool is_of_script(const Program& program, const Wrap& wrap) {
  if (program.mentions("LOCAL_RANK")) return true;
  const auto function = program.enclosing_function(diagnose::made_at(program, wrap.call).ref());
  return !function || !is_offered(program, function);
}

// save_path is not None, verbose, self.writer: what the caller hands over to one rank, perhaps.
bool is_switch_of_caller(const Program& program, Ref condition) {
  while (condition.kind() == Kind::not_expression) condition = condition.child(Field::argument);
  if (condition.kind() == Kind::boolean)
    return is_switch_of_caller(program, condition.child(Field::left)) ||
           is_switch_of_caller(program, condition.child(Field::right));
  if (condition.kind() == Kind::comparison && facts::contains(condition.text(), "None"))
    condition = condition.with(condition.module->tree()[condition.node].first_child);
  return condition.kind() == Kind::attribute || facts::is_parameter(program, condition);
}

// The function of the place steps through batches with a backward pass, and the caller decides
// nothing above the place: every rank comes by.
bool trains_itself(const Program& program, Ref where) {
  const auto function = program.enclosing_function(where);
  for (const diagnose::Guard& guard : program.guards(where))
    if (is_switch_of_caller(program, guard.condition)) return false;
  const auto& loops = program.training_loops();
  return function && std::any_of(loops.begin(), loops.end(), [&](const auto& loop) {
           return !loop.backwards.empty() && program.enclosing_function(loop.batches) == function;
         });
}

}  // namespace

bool wraps_in_ranks(const Program& program) {
  return !program.is_notebook() &&
         surely_wraps(program, [&](const Wrap& wrap) { return is_of_script(program, wrap); });
}

bool wraps_for_others(const Program& program) {
  return program.calls(diagnose::Api::init_process_group).empty() &&
         surely_wraps(program,
                      [&](const Wrap& wrap) { return wrap.call.module == &program.root(); });
}

bool asks_callers_for_the_rank(const Program& program, std::string_view rule, Ref where) {
  return (rule == "DDP026" || rule == "DDP039") && !program.root().has_main_guard() &&
         !trains_itself(program, where);
}

}  // namespace bench::pitfalls::facts
