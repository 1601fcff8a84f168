#include "scenarios/pitfalls/group_elsewhere.hpp"

#include "scenarios/pitfalls/certainty.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

bool wraps_for_a_group_elsewhere(const Program& program) {
  if (!program.calls(diagnose::Api::init_process_group).empty()) return false;
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
    return wrap.kind == diagnose::Wrapper::ddp &&
           (wrap.call.module == &program.root() || program.mentions("LOCAL_RANK")) &&
           certainty_of_reach(program, wrap.call.ref()) == Certainty::certain;
  });
}

bool asks_callers_for_the_rank(const Program& program, std::string_view rule) {
  return (rule == "DDP026" || rule == "DDP039") && !program.root().has_main_guard();
}

}  // namespace bench::pitfalls::facts
