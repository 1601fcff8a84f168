#include "scenarios/pitfalls/wrappers/bare_training.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;

namespace {

// net(x) after net = Net() of a class of the program, and nothing else that net may be.
bool calls_bare_model(const Program& program, const CallRef& call) {
  const Ref model{call.module, call.call->function};
  if (model.kind() != diagnose::Kind::identifier || program.wrap_of(model) != nullptr) return false;
  const auto& sources = program.module_sources(model);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value &&
           program.derives_from(program.class_of_call(program.as_call(source.ref)),
                                Api::module_class);
  });
}

// inner(x) after inner = ddp.module, or ddp.module(x)
bool calls_inner_model(const Program& program, const CallRef& call) {
  if (wrapper_gone_round(program, call) != nullptr) return true;
  const auto& sources = program.sources({call.module, call.call->function});
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return wrapper_of_inner(program, source.ref) != nullptr;
  });
}

}  // namespace

bool trains_bare_model(const Program& program, const diagnose::TrainingLoop& loop,
                       const diagnose::FunctionRef& function) {
  bool is_bare = false;
  for (const CallRef& backward : loop.backwards) {
    if (program.enclosing_function(backward.ref()) != function) continue;
    const Ref loss = facts::loss_of(backward);
    if (!loss || !facts::forwards_behind(program, loss).empty()) return false;
    for (const Ref node : facts::calls_behind(program, loss)) {
      const CallRef call = program.as_call(node);
      is_bare = is_bare || calls_bare_model(program, call) ||
                (calls_inner_model(program, call) && !program.under_no_grad(node));
    }
  }
  return is_bare;
}

}  // namespace bench::pitfalls
