#include "scenarios/pitfalls/model_moves.hpp"

#include "scenarios/pitfalls/argument_for.hpp"
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// The model in model, DataParallel(model) and DDP(model).
Ref moved_object(const Program& program, const CallRef& move) {
  const CallRef wrapper = program.as_call(move.receiver());
  const bool wraps =
      wrapper && (wrapper.call->api == Api::data_parallel || wrapper.call->api == Api::ddp);
  return wraps ? wrapper.argument(0, "module") : move.receiver();
}

bool is_given(const CallRef& site, std::string_view name) {
  const auto given = facts::arguments_of(site);
  return std::any_of(given.begin(), given.end(), [&](Ref value) { return value.text() == name; });
}

// The calls that hand the model, and the optimizer with it, to the function that moves it.
std::vector<CallRef> handed_over(const Program& program, Ref moved, Ref model,
                                 std::string_view optimizer) {
  std::vector<CallRef> out;
  if (optimizer.empty() || moved.kind() != diagnose::Kind::identifier ||
      !facts::is_parameter(program, moved))
    return out;
  const auto function = program.enclosing_function(moved);
  for (const CallRef& site : program.call_sites(function)) {
    const Ref given = facts::argument_for(site, function, moved.text());
    if (given && is_given(site, optimizer) && program.same_variable(given, model))
      out.push_back(site);
  }
  return out;
}

}  // namespace

std::vector<ModelMove> moves_of_model(const Program& program, Ref model,
                                      std::string_view optimizer) {
  std::vector<ModelMove> out;
  for (const std::string_view method : {"to", "cuda"})
    for (const CallRef& move : program.calls_named(method)) {
      const Ref moved = moved_object(program, move);
      if (!moved) continue;
      if (program.same_variable(moved, model)) {
        out.push_back({move, move});
        continue;
      }
      for (const CallRef& site : handed_over(program, moved, model, optimizer))
        out.push_back({move, site});
    }
  return out;
}

}  // namespace bench::pitfalls
