#include "scenarios/pitfalls/metrics/torchmetrics.hpp"

#include <algorithm>

namespace bench::pitfalls {

bool is_torchmetric(const Program& program, Ref object) {
  if (!object || !program.imports("torchmetrics")) return false;
  const auto& sources = program.module_sources(object);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    const Ref switched = made ? made.keyword("sync_on_compute") : Ref{};
    return made && !(switched && program.is_literal_false(switched)) &&
           made.call->path.starts_with("torchmetrics.");
  });
}

bool reduces_by_itself(const Program& program, Ref object) {
  const CallRef made = program.made_by(object);
  if (!made || program.class_of_call(made)) return false;
  const std::string_view path = made.call->path;
  return path.starts_with("monai.metrics.") ||
         (program.uses(diagnose::Api::hvd_init) && made.call->name == "Metric");
}

bool reduces_on_compute(const Program& program, const CallRef& call) {
  return call.call->name == "compute" && is_torchmetric(program, call.receiver());
}

}  // namespace bench::pitfalls
