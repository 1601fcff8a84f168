#include "scenarios/pitfalls/torchmetrics.hpp"

#include <algorithm>

namespace bench::pitfalls {

bool reduces_on_compute(const Program& program, const CallRef& call) {
  if (call.call->name != "compute" || !call.receiver() || !program.imports("torchmetrics"))
    return false;
  const auto sources = program.module_sources(call.receiver());
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    const Ref switched = made ? made.keyword("sync_on_compute") : Ref{};
    return made && !(switched && program.is_literal_false(switched)) &&
           made.module->qualified(made.call->function).starts_with("torchmetrics.");
  });
}

}  // namespace bench::pitfalls
