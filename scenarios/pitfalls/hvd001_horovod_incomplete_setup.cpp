#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/steps/reduced_gradients.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// allreduce_parameters(model.state_dict()): the weights are averaged instead, as local SGD does.
bool averages_weights(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const Ref given = CallRef{module, &made}.positional(0);
      if (!given ||
          !(facts::contains(made.name, "allreduce") || facts::contains(made.name, "all_reduce") ||
            facts::contains(made.name, "average")))
        continue;
      if (holds_any(text_behind(program, given), {".state_dict()", "parameters()", ".data"}))
        return true;
    }
  return false;
}

// Not in a function of an imported file that this program never calls: the scripts that call it are
// programs of their own, and wrap what it gives them.
bool may_run(const Program& program, Ref node) {
  const auto function = program.enclosing_function(node);
  if (!function) return true;
  const auto& tree = function.module->tree();
  // @cli.command(), @register: whoever keeps it may call it.
  const bool is_decorated =
      tree[tree[function.function->node].parent].kind == diagnose::Kind::decorated;
  return is_decorated || node.module == &program.root() ||
         function.function->owner_class != diagnose::kNoNode ||
         !program.call_sites(function).empty() || !program.handed_on(function).empty();
}

}  // namespace

void check_horovod_incomplete_setup(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_init) || program.uses(Api::hvd_elastic)) return;
  const auto& loops = program.training_loops();
  if (program.uses(Api::hvd_optimizer) ||
      std::none_of(loops.begin(), loops.end(),
                   [&](const auto& loop) { return may_run(program, loop.batches); }))
    return;
  if (reduces_gradients(program) || averages_weights(program) ||
      !program.calls_named("DistributedOptimizer").empty())
    return;
  const CallRef init = program.calls(Api::hvd_init).front();
  const auto made = program.calls(Api::optimizer);
  std::vector<CallRef> optimizers(made.begin(), made.end());
  std::erase_if(optimizers, [&](const CallRef& each) { return !may_run(program, each.ref()); });
  report
      .at(optimizers.empty() ? init.ref() : optimizers.front().ref(), Confidence::certain,
          "the optimizer is not wrapped in hvd.DistributedOptimizer: gradients are never reduced, "
          "and every rank trains a model of its own")
      .help =
      "optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters()).";
}

}  // namespace bench::pitfalls
