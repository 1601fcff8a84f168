#include "scenarios/pitfalls/frameworks/engine_runs.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/words.hpp"

namespace bench::pitfalls {

std::vector<EngineRun> engine_runs(const Program& program) {
  std::vector<EngineRun> out;
  if (!program.imports("ignite")) return out;
  for (const CallRef& run : program.calls_named("run"))
    for (const CallRef& loader : loaders_of(program, run.argument(0, "data")))
      if (const CallRef sampler = sampler_of(program, loader); sampler && run.receiver())
        out.push_back({run, loader, sampler,
                       is_evaluation_loader(program, loader) ||
                           says_any(run.receiver().text(), {"eval", "valid", "test"})});
  return out;
}

void check_epochs_of_engines(const Program& program, Report& report) {
  if (!program.calls_named("set_epoch").empty() ||
      program.mentions("setup_common_training_handlers") || program.mentions("sampler.epoch"))
    return;
  for (const EngineRun& each : engine_runs(program)) {
    const Ref epochs = each.run.argument(1, "max_epochs");
    if (each.evaluates || !epochs || program.integer(epochs).value_or(2) < 2 ||
        program.class_of_call(each.sampler) ||
        program.is_literal_false(each.sampler.argument(3, "shuffle")))
      continue;
    Finding& finding = report.at(each.run.ref(), Confidence::certain,
                                 "the engine goes over the loader epoch by epoch and set_epoch is "
                                 "never called: DistributedSampler gives the same order each time");
    finding.help =
        "Call sampler.set_epoch(engine.state.epoch) in a handler of Events.EPOCH_STARTED.";
    note_sampler(each.sampler, finding);
    return;
  }
}

}  // namespace bench::pitfalls
