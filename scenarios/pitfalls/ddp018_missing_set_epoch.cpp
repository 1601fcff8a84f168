#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {
namespace {

// set_epoch with an argument that changes; set_epoch(0) keeps the order it would have anyway.
bool sets_epoch(const Program& program) {
  for (const CallRef& call : program.calls_named("set_epoch"))
    if (!program.integer(call.positional(0)) || program.evaluate(call.positional(0)).is_default)
      return true;
  return false;
}

}  // namespace

void check_missing_set_epoch(const Program& program, Report& report) {
  if (program.imports("pytorch_lightning") || program.imports("lightning") ||
      program.imports("accelerate") || program.imports("ignite") || program.imports("mmcv"))
    return;
  if (sets_epoch(program)) return;
  for (const diagnose::TrainingLoop& loop : program.training_loops()) {
    if (!loop.epochs) continue;
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      const CallRef sampler = sampler_of(program, loader);
      if (!sampler || program.is_literal_false(sampler.argument(3, "shuffle"))) continue;
      const auto epochs = epoch_count(program, loop.epochs);
      if (epochs && *epochs <= 1) continue;
      const CallRef constant = program.calls_named("set_epoch").empty()
                                   ? CallRef{}
                                   : program.calls_named("set_epoch").front();
      auto& finding =
          constant
              ? report.at(constant.ref(), Confidence::certain,
                          "set_epoch is called with a constant: the sampler gives the same order "
                          "in every epoch")
              : report.at(loop.epochs, Confidence::certain,
                          "no set_epoch call on the DistributedSampler: every epoch visits the "
                          "samples in the same order");
      finding.help =
          "Call sampler.set_epoch(epoch) at the top of each epoch, before the loader is "
          "iterated.";
      finding.evidence.emplace_back(
          "sampler_line", std::to_string(sampler.module->tree().line_of(sampler.call->node)));
      fix_set_epoch(program, loop, loader, sampler, finding);
      break;
    }
  }
}

}  // namespace bench::pitfalls
