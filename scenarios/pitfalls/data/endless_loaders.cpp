#include "scenarios/pitfalls/data/endless_loaders.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

namespace {

// inf_iterator, infinite_loader, cycle, repeat_dataloader: of a file that is not at hand, or of
// itertools; it starts the loader again where that ends, and has nothing to count the passes for.
bool is_endless_by_name(std::string_view name) {
  const std::string plain = facts::lowered(name);
  if (plain == "cycle") return true;
  const bool endless =
      holds_any(plain, {"infinite", "inf_", "infloop", "endless", "forever", "cycl", "repeat"});
  return endless && holds_any(plain, {"iter", "load", "loop", "gen", "batch", "infinite", "data"});
}

// itertools.cycle(loader) keeps the batches of the first pass, and never asks the loader again: no
// set_epoch changes what it gives.
bool replays(const CallRef& call) { return call.call->path == "itertools.cycle"; }

// loader.sampler.epoch = epoch, without the method.
bool sets_epoch_by_hand(const Program& program) {
  for (const auto* module : program.modules())
    for (const diagnose::NodeId node : module->nodes_of(diagnose::Kind::assignment))
      if (Ref{module, node}.child(diagnose::Field::left).text().ends_with(".epoch") &&
          says_any(Ref{module, node}.child(diagnose::Field::left).text(), {"sampler"}))
        return true;
  return false;
}

// for step in range(len(loader)): batch = next(batches), in no other loop: one pass.
bool is_one_pass(const Program& program, const CallRef& endless) {
  const std::string_view name = program.assigned_name(endless.ref());
  const auto draws = program.calls_named("next");
  return !name.empty() && std::any_of(draws.begin(), draws.end(), [&](const CallRef& draw) {
    if (draw.positional(0).text() != name) return false;
    const auto loops = program.loops_around(draw.ref());
    if (loops.size() != 1) return false;
    const CallRef range = program.as_call(loops.front().child(diagnose::Field::right));
    return range && range.call->name == "range" && !range.positional(1) &&
           text_behind(program, range.positional(0)).find("len(") != std::string::npos &&
           text_behind(program, range.positional(0)).find('*') == std::string::npos;
  });
}

// A sampler of PyTorch's own class, which shuffles, of a loader for training.
CallRef shuffling_sampler(const Program& program, const CallRef& loader) {
  const CallRef sampler = sampler_of(program, loader);
  const bool shuffles = sampler && !program.class_of_call(sampler) &&
                        !is_evaluation_loader(program, loader) &&
                        !program.is_literal_false(sampler.argument(3, "shuffle"));
  return shuffles ? sampler : CallRef{};
}

}  // namespace

void check_endless_loaders(const Program& program, Report& report) {
  if (program.mentions("set_epoch") || program.framework_distributes() ||
      program.calls_named("backward").empty() || sets_epoch_by_hand(program))
    return;
  for (const CallRef& call : program.calls_that(is_endless_by_name)) {
    if (!call.positional(0) || program.callee(call) || replays(call) ||
        is_one_pass(program, call) || program.is_evaluation(call.ref()) ||
        !facts::is_reachable(program, call.ref()))
      continue;
    for (const CallRef& loader : loaders_of(program, call.positional(0))) {
      const CallRef sampler = shuffling_sampler(program, loader);
      // The seed may count the passes of a script that makes the sampler anew.
      if (!sampler || !program.loops_around(sampler.ref()).empty()) continue;
      Finding& finding =
          report.at(call.ref(), Confidence::likely,
                    "no set_epoch call on the DistributedSampler of a loader that starts again "
                    "without an end: every pass visits the samples in the same order");
      finding.help = "Count the passes, and call sampler.set_epoch(passes) before each of them.";
      note_sampler(sampler, finding);
      return;
    }
  }
}

}  // namespace bench::pitfalls
