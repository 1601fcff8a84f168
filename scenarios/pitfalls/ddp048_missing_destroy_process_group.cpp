#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Api;

void check_missing_destroy_process_group(const Program& program, Report& report) {
  if (program.uses(Api::destroy_process_group) || program.framework_distributes()) return;
  const auto inits = program.calls(Api::init_process_group);
  if (inits.empty() || program.uses(Api::deepspeed) || program.training_loops().empty()) return;
  report
      .at(inits.front().ref(), Confidence::check,
          "the process group is never destroyed: PyTorch warns at exit, and NCCL may hang there")
      .help = "Call dist.destroy_process_group() at the end.";
}

}  // namespace bench::pitfalls
