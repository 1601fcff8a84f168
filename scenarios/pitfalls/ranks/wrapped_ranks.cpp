#include "scenarios/pitfalls/ranks/wrapped_ranks.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

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

// The function of the place steps through batches with a backward pass: every rank runs it.
bool trains_itself(const Program& program, Ref where) {
  const auto function = program.enclosing_function(where);
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
