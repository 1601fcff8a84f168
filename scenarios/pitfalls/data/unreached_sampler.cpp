#include "scenarios/pitfalls/data/unreached_sampler.hpp"

#include "scenarios/pitfalls/data/fixed_epoch.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Source;

namespace {

// loader of loader.sampler.set_epoch(...); empty for loader.batch_sampler.sampler and a sampler
// that has a name of its own.
Ref told_loader(const CallRef& set) {
  const Ref object = set.receiver();
  if (object.kind() != Kind::attribute || object.child(Field::attribute).text() != "sampler")
    return {};
  const Ref loader = object.child(Field::object);
  return facts::contains(facts::lowered(loader.text()), "sampler") ? Ref{} : loader;
}

bool is_plain_batch_sampler(const CallRef& made) {
  return made.call->path == "torch.utils.data.BatchSampler" ||
         made.call->path == "torch.utils.data.sampler.BatchSampler";
}

// The DistributedSamplers that shuffle, in what makes the batches of the loader; empty where it may
// have a .sampler that it was given.
std::vector<CallRef> inside_batch_sampler(const Program& program, const CallRef& loader) {
  const Ref batches = loader.keyword("batch_sampler");
  std::vector<CallRef> out;
  if (!batches || loader.argument(3, "sampler") || loader.has_splat() ||
      program.class_of_call(loader))
    return out;
  for (const Source& source : program.sources(batches)) {
    const CallRef made = program.as_call(source.ref);
    // One of another library may tell the epochs by itself.
    if (!made || source.how != Source::How::value || !is_plain_batch_sampler(made)) return {};
    const CallRef sampler = program.origin(made.argument(0, "sampler"), Api::distributed_sampler);
    if (sampler && !program.class_of_call(sampler) &&
        !program.is_literal_false(sampler.argument(3, "shuffle")))
      out.push_back(sampler);
  }
  return out;
}

// All loaders that the call may mean have a batch sampler with such a sampler inside: those.
std::vector<CallRef> unreached_by(const Program& program, const CallRef& set) {
  std::vector<CallRef> out;
  const Ref told = told_loader(set);
  if (!told || says_any(told.text(), {"val", "test", "eval"})) return out;
  for (const CallRef& loader : loaders_of(program, told)) {
    const auto inside = inside_batch_sampler(program, loader);
    if (inside.empty()) return {};
    out.insert(out.end(), inside.begin(), inside.end());
  }
  return out;
}

// Asked for above, so that nothing is raised where there is no such method.
bool is_tried(const Program& program, const CallRef& set) {
  const auto guards = program.guards(set.ref());
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    return guard.holds &&
           holds_any(guard.condition.text(), {"hasattr(", "getattr(", "isinstance("});
  });
}

// The call tells another sampler than this one, as far as can be seen.
bool is_for_another(const Program& program, const CallRef& set, const CallRef& sampler) {
  if (!unreached_by(program, set).empty()) return true;
  const auto& told = program.sources(set.receiver());
  return !told.empty() && std::all_of(told.begin(), told.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return source.how == Source::How::value && made && made.call->api == Api::distributed_sampler &&
           made.ref() != sampler.ref();
  });
}

// sampler.epoch = epoch, tell_epoch(sampler, epoch) and getattr(sampler, "set_epoch"): it may be
// told by these.
bool may_be_told_otherwise(const Program& program, Ref epochs) {
  const auto sets_epoch = [](const diagnose::Module* module, diagnose::NodeId node) {
    const Ref target = Ref{module, node}.child(Field::left);
    return target.kind() == Kind::attribute && target.text().ends_with(".epoch") &&
           facts::contains(facts::lowered(target.text()), "sampler");
  };
  for (const diagnose::Module* module : program.modules())
    for (const auto nodes :
         {module->nodes_of(Kind::assignment), module->nodes_of(Kind::augmented_assignment)})
      for (const diagnose::NodeId node : nodes)
        if (sets_epoch(module, node)) return true;
  return program.subtree_calls(epochs, [&](const CallRef& call) {
    if (call.call->name == "hasattr" || call.call->name == "isinstance") return false;
    const auto arguments = call.module->arguments(call.call->node);
    return std::any_of(arguments.begin(), arguments.end(), [&](const diagnose::Argument& each) {
      return says_any(call.module->text(each.value), {"sampler"});
    });
  });
}

bool trains(const Program& program, Ref epochs) {
  return program.subtree_calls(epochs,
                               [](const CallRef& call) { return call.call->name == "backward"; });
}

}  // namespace

void check_unreached_samplers(const Program& program, Report& report) {
  if (program.framework_distributes()) return;
  const auto sets = program.calls_named("set_epoch");
  std::vector<Ref> reported;  // loops over epochs
  for (const CallRef& set : sets) {
    const auto around = program.loops_around(set.ref());
    const Ref epochs = around.empty() ? Ref{} : around.front();
    const auto unreached = unreached_by(program, set);
    if (!epochs || unreached.empty() || !is_tried(program, set) ||
        never_changes(program, set.positional(0)) ||
        epoch_count(program, epochs).value_or(2) <= 1 || !trains(program, epochs) ||
        may_be_told_otherwise(program, epochs) ||
        std::find(reported.begin(), reported.end(), epochs) != reported.end())
      continue;
    const bool told_elsewhere = std::any_of(sets.begin(), sets.end(), [&](const CallRef& other) {
      return std::any_of(unreached.begin(), unreached.end(), [&](const CallRef& sampler) {
        return !is_for_another(program, other, sampler);
      });
    });
    if (told_elsewhere) continue;
    Finding& finding = report.at(
        set.ref(), Confidence::likely,
        "the loader is given a batch_sampler, and its .sampler is another one, without set_epoch: "
        "the DistributedSampler inside never hears of the epoch");
    finding.help = "Call loader.batch_sampler.sampler.set_epoch(epoch).";
    note_sampler(unreached.front(), finding);
    reported.push_back(epochs);
  }
}

}  // namespace bench::pitfalls
