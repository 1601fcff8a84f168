#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::Module;
using diagnose::Source;

void check_spawn_misuse(const Program& program, Report& report) {
  for (const CallRef& spawn : program.calls(Api::spawn)) {
    if (facts::is_switched_off(program, spawn.ref())) continue;
    const Module& module = *spawn.module;
    if (module.function_of(spawn.call->node) == 0 && !module.under_main_guard(spawn.call->node) &&
        !program.is_notebook() && spawn.call->name == "spawn")
      report
          .at(spawn.ref(), Confidence::certain,
              "mp.spawn at module level: every child imports the script and spawns again (\"before "
              "the current process has finished its bootstrapping phase\")")
          .help = "Put it under if __name__ == \"__main__\".";
    for (const LaunchLine& launch : program.launches())
      if (launch.launcher == Launcher::torchrun && launch.processes_per_node().value_or(2) > 1)
        report
            .at(spawn.ref(), Confidence::certain,
                "torchrun starts the ranks, and each of them spawns as many again")
            .help = "Use torchrun alone.";
    const Ref target = spawn.argument(0, "fn");
    const Ref arguments = spawn.argument(1, "args");
    if (!target) continue;
    const bool listed = arguments && arguments.kind() == Kind::tuple;
    const std::size_t given =
        (listed ? arguments.module->tree().child_count(arguments.node) : 0) + 1;
    if (arguments && !listed) continue;
    if (listed && facts::contains(arguments.text(), "*")) continue;  // args=(size, *rest)
    for (const Source& source : program.sources(target)) {
      if (source.ref.kind() != Kind::function) continue;
      const auto* function = source.ref.module->function_at(source.ref.node);
      std::size_t most = 0;
      std::size_t least = 0;
      bool open = false;
      for (const auto& parameter : function->parameters) {
        if (parameter.splat != 0)
          open = true;
        else
          ++most;
        if (parameter.splat == 0 && parameter.default_value == kNoNode) ++least;
      }
      if (function->owner_class != kNoNode || (given >= least && (open || given <= most))) continue;
      report
          .at(spawn.ref(), Confidence::certain,
              "mp.spawn calls " + std::string(function->name) + " with the rank and " +
                  std::to_string(given - 1) + " arguments, but it takes " + std::to_string(least) +
                  ": TypeError")
          .help = "The first parameter is the rank; args must hold the rest.";
    }
  }
}

}  // namespace bench::pitfalls
