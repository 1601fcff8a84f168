#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Api;

void check_horovod_incomplete_setup(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_init) || program.uses(Api::hvd_elastic)) return;
  if (program.uses(Api::hvd_optimizer) || program.training_loops().empty()) return;
  if (program.mentions("hvd.allreduce") || program.mentions("grouped_allreduce") ||
      program.mentions("DistributedOptimizer"))
    return;
  const CallRef init = program.calls(Api::hvd_init).front();
  const auto optimizers = program.calls(Api::optimizer);
  report
      .at(optimizers.empty() ? init.ref() : optimizers.front().ref(), Confidence::certain,
          "the optimizer is not wrapped in hvd.DistributedOptimizer: gradients are never reduced, "
          "and every rank trains a model of its own")
      .help =
      "optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters()).";
}

}  // namespace bench::pitfalls
