#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

void check_accelerate_scheduler_steps(const Program& program, Report& report) {
  if (!program.uses(Api::accelerator)) return;
  const auto prepares = program.calls_named("prepare");
  for (const CallRef& scheduler : program.calls(Api::scheduler)) {
    const std::string_view name = program.assigned_name(scheduler.ref());
    if (name.empty() || !facts::contains(scheduler.module->text(scheduler.call->node), "len("))
      continue;
    bool after = false;
    bool prepared = false;
    for (const CallRef& prepare : prepares) {
      if (prepare.module != scheduler.module ||
          program.enclosing_function(prepare.ref()) != program.enclosing_function(scheduler.ref()))
        continue;
      for (std::size_t i = 0; const Ref argument = prepare.positional(i); ++i) {
        prepared =
            prepared || (argument.text() == name && prepare.call->node > scheduler.call->node);
        const bool counts = argument.kind() == Kind::identifier &&
                            facts::contains(scheduler.module->text(scheduler.call->node),
                                            "len(" + std::string(argument.text()) + ")");
        after = after || (counts && prepare.call->node < scheduler.call->node);
      }
    }
    if (!prepared || !after) continue;
    report
        .at(scheduler.ref(), Confidence::likely,
            "the schedule counts the batches of one process and is then prepared: its step() "
            "advances once for every process, so it decays too fast")
        .help =
        "Count with the loader as it was before prepare(), or do not prepare the scheduler.";
  }
}

}  // namespace bench::pitfalls
