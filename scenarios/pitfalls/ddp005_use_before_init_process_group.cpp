#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::kNoNode;

namespace {

bool is_guarded_by_state(const Program& program, Ref node) {
  if (node.module->tree().ancestor(node.node, Kind::try_statement) != kNoNode) return true;
  return program.under(node, [](Ref condition, bool) {
    return facts::contains(condition.text(), "is_initialized") ||
           facts::contains(condition.text(), "is_available") ||
           facts::contains(condition.text(), "distributed");
  });
}

}  // namespace

void check_use_before_init_process_group(const Program& program, Report& report) {
  const auto inits = program.calls(Api::init_process_group);
  if (inits.empty() || program.framework_distributes()) return;
  const auto made_before = [&](const CallRef& use) {
    for (const CallRef& init : inits) {
      if (facts::exclusive(use.ref(), init.ref())) return true;
      if (!program.runs_before(use.ref(), init.ref())) return true;
    }
    return false;
  };
  const auto flag = [&](const CallRef& use, std::string_view what) {
    if (made_before(use) || !facts::is_reachable(program, use.ref())) return;
    report
        .at(use.ref(), Confidence::certain,
            std::string(what) +
                " before init_process_group: ValueError \"Default process group has "
                "not been initialized\"")
        .help = "Move init_process_group above it.";
  };
  for (const CallRef& use : program.calls(Api::ddp)) flag(use, "DistributedDataParallel is built");
  for (const CallRef& use : program.calls(Api::distributed_sampler))
    if (!(use.argument(1, "num_replicas") && use.argument(2, "rank")))
      flag(use, "DistributedSampler is built");
  for (const Api api : {Api::get_rank, Api::get_world_size, Api::barrier})
    for (const CallRef& use : program.calls(api))
      if (!is_guarded_by_state(program, use.ref())) flag(use, "the process group is used");
  if (program.uses(Api::destroy_process_group)) return;
  for (const CallRef& second : inits)
    for (const CallRef& first : inits)
      if (first.module == second.module && first.call->node < second.call->node &&
          program.enclosing_function(first.ref()) == program.enclosing_function(second.ref()) &&
          program.guards(first.ref()).empty() && program.guards(second.ref()).empty() &&
          !facts::exclusive(first.ref(), second.ref()))
        report
            .at(second.ref(), Confidence::certain,
                "the process group is initialised a second time: ValueError \"trying to initialize "
                "the default process group twice!\"")
            .help = "Initialise it once; guard with dist.is_initialized().";
}

}  // namespace bench::pitfalls
