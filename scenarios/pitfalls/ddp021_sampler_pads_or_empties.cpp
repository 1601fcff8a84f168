#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::Api;

void check_sampler_pads_or_empties(const Program& program, Report& report) {
  if (program.framework_distributes() || program.mentions("gather_for_metrics")) return;
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const CallRef sampler = sampler_of(program, loader);
    if (!sampler || !is_evaluation_loader(program, loader)) continue;
    if (program.is_literal_true(sampler.keyword("drop_last")) || program.mentions("total_size"))
      continue;
    Finding& finding = report.at(sampler.ref(), Confidence::check,
                                 "the evaluation sampler repeats samples until all ranks have "
                                 "equally many: up to world size "
                                 "- 1 samples count twice in the metric");
    finding.severity = Severity::info;
    finding.help =
        "Shard without padding and reduce sum and count; or cut gathered results to len(dataset).";
  }
}

}  // namespace bench::pitfalls
