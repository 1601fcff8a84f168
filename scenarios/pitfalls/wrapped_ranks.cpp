#include "scenarios/pitfalls/wrapped_ranks.hpp"

#include "scenarios/pitfalls/certainty.hpp"
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Wrap;

namespace {

// A file that others use may be started as one process, unless it asks a launcher's environment.
bool is_of_script(const Program& program, const Wrap& wrap) {
  if (program.mentions("LOCAL_RANK")) return true;
  const auto function = program.enclosing_function(wrap.call.ref());
  return !function || !is_offered(program, function);
}

}  // namespace

bool wraps_in_ranks(const Program& program) {
  const auto& wraps = program.wraps();
  return !program.is_notebook() && std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return wrap.kind == diagnose::Wrapper::ddp && is_of_script(program, wrap) &&
           certainty_of_reach(program, wrap.call.ref()) == Certainty::certain;
  });
}

}  // namespace bench::pitfalls::facts
