#include "scenarios/pitfalls/frameworks/engine_states.hpp"

#include "scenarios/pitfalls/files/saved_states.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// with FSDP.state_dict_type(model, ...): the model is FSDP's there.
bool is_of_fsdp(const Program& program, Ref state) {
  return static_cast<bool>(program.enclosing_with(
      state, [](Ref item) { return facts::contains(item.text(), "state_dict_type("); }));
}

// if by_deepspeed: engine.save_checkpoint(path) else: save(model): the engine is no model that
// comes by here.
bool is_of_runs_without_engine(const Program& program, Ref state) {
  const auto saved = [&](Ref place) {
    const auto own = program.calls_named("save_checkpoint");
    return std::any_of(own.begin(), own.end(), [&](const CallRef& call) {
      return call.receiver() && is_engine(program, call.receiver()) &&
             facts::exclusive(call.ref(), place);
    });
  };
  if (saved(state)) return true;
  const auto function = program.enclosing_function(state);
  if (!function) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(),
                     [&](const CallRef& site) { return saved(site.ref()); });
}

}  // namespace

std::vector<CallRef> saves_of_engines(const Program& program) {
  std::vector<CallRef> out;
  if (!program.uses(Api::deepspeed)) return out;
  for (const CallRef& load : program.calls_named("load_state_dict"))
    if (is_engine(program, load.receiver())) return out;
  for (const CallRef& save : program.calls(Api::torch_save))
    for (const CallRef& state : calls_saved(program, save))
      if (state.call->name == "state_dict" && is_engine(program, state.receiver()) &&
          !is_of_fsdp(program, state.ref()) && !is_of_runs_without_engine(program, state.ref()))
        out.push_back(state);
  return out;
}

}  // namespace bench::pitfalls
