#include "scenarios/pitfalls/data/loader_epochs.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;

namespace {

// Whatever the name holds is a loader of PyTorch's own class, or None.
bool is_plain_loader(const Program& program, Ref object) {
  const auto& sources = program.sources(object);
  bool made = false;
  for (const Source& source : sources) {
    if (source.ref.kind() == diagnose::Kind::none_literal) continue;
    const CallRef call = program.as_call(source.ref);
    if (source.how != Source::How::value || !call || call.call->api != Api::data_loader ||
        program.class_of_call(call))
      return false;
    made = true;
  }
  return made;
}

}  // namespace

void check_epochs_of_loaders(const Program& program, Report& report) {
  if (program.framework_distributes()) return;
  for (const CallRef& set : program.calls_named("set_epoch")) {
    const Ref object = set.receiver();
    if (!object || !is_plain_loader(program, object) ||
        set.module->tree().ancestor(set.call->node, diagnose::Kind::try_statement) !=
            diagnose::kNoNode ||
        program.under(set.ref(), [](Ref condition, bool) {
          return facts::contains(condition.text(), "attr(") ||
                 facts::contains(condition.text(), "isinstance(");
        }))
      continue;
    report
        .at(set.ref(), Confidence::certain,
            "a DataLoader has no set_epoch: AttributeError, it is a method of its sampler")
        .help = "Call " + std::string(object.text()) + ".sampler.set_epoch().";
  }
}

}  // namespace bench::pitfalls
