#include "scenarios/pitfalls/frameworks/horovod_models.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;

namespace {

void add_models_in(Ref arguments, std::vector<Ref>& models) {
  for (const CallRef& call : facts::calls_in(arguments))
    if (call.call->name == "parameters" && call.receiver()) models.push_back(call.receiver());
}

}  // namespace

std::vector<Ref> models_of_horovod_optimizer(const Program& program, const CallRef& made) {
  std::vector<Ref> models;
  const Ref base = made.argument(0, "optimizer");
  if (!base) return models;
  for (const Source& source : program.sources(base)) {
    const CallRef optimizer = program.as_call(source.ref);
    if (source.how == Source::How::value && optimizer && optimizer.call->api == Api::optimizer)
      add_models_in(optimizer.ref(), models);
  }
  for (const CallRef& group : program.calls_named("add_param_group"))
    if (group.receiver() && program.same_variable(group.receiver(), base))
      add_models_in(group.ref(), models);
  return models;
}

bool same_model(const Program& program, Ref a, Ref b) {
  if (program.same_variable(a, b)) return true;
  const auto& of_b = program.module_sources(b);
  for (const Source& source : program.module_sources(a))
    if (source.how == Source::How::value && program.as_call(source.ref) &&
        std::any_of(of_b.begin(), of_b.end(), [&](const Source& other) {
          return other.how == Source::How::value && other.ref == source.ref;
        }))
      return true;
  return false;
}

}  // namespace bench::pitfalls
